"""The books of metrics: what must add up, as queries that find what does not. Each gives no row where all is well."""

from __future__ import annotations

from typing import Any

from casework.store.database import Database
from tests.integration.store.cases import fetch

FIGURES = (
    "attempts_completed",
    "attempts_failed",
    "attempts_lost",
    "attempts_late",
    "tokens_in",
    "tokens_out",
    "cost",
    "latency_ms",
)
CALLS = ("model_calls", "tool_calls")
REVIEWS = ("reviews_asked", "reviews_decided", "reviews_closed", "review_seconds")
ENDED = "('COMPLETED', 'FAILED', 'CANCELLED')"


def _sum(names: tuple[str, ...], source: str = "") -> str:
    return ", ".join(f"coalesce(sum({source}{name}), 0)::numeric as {name}" for name in names)


OF_ATTEMPTS = """
    coalesce(sum((a.outcome = 'COMPLETED')::integer), 0)::numeric as attempts_completed,
    coalesce(sum((a.outcome = 'FAILED')::integer), 0)::numeric as attempts_failed,
    coalesce(sum((a.outcome = 'LOST')::integer), 0)::numeric as attempts_lost,
    coalesce(sum((a.outcome = 'LATE')::integer), 0)::numeric as attempts_late,
    coalesce(sum(a.tokens_in), 0)::numeric as tokens_in, coalesce(sum(a.tokens_out), 0)::numeric as tokens_out,
    coalesce(sum(a.cost), 0)::numeric as cost, coalesce(sum(a.latency_ms), 0)::numeric as latency_ms
"""
SUM_OF_TURNS = f"select tenant, run_id, {_sum(FIGURES + CALLS)} from agent_ops.agent_turn_metrics group by 1, 2"
SUM_OF_RUNS = f"""
    select m.tenant, m.run_id, {_sum(FIGURES + CALLS, "m.")} from agent_ops.agent_run_metrics m
    where exists (select from agent_ops.agent_turn_metrics t where t.tenant = m.tenant and t.run_id = m.run_id)
    group by 1, 2
"""
WHOLE = FIGURES + CALLS + REVIEWS
KEY = "tenant, workflow_name, workflow_version, hour, status, outcome, slot"
DIFFERENCES = {
    "turns are the sum of their attempts": (
        f"select tenant, run_id, turn, {_sum(FIGURES)} from agent_ops.agent_turn_metrics group by 1, 2, 3",
        f"""select a.tenant, a.run_id, s.turn, {OF_ATTEMPTS} from agent_ops.agent_step_attempts a
        join agent_ops.agent_steps s on s.tenant = a.tenant and s.step_id = a.step_id where a.outcome is not null
        group by 1, 2, 3""",
    ),
    "runs are the sum of their turns": (SUM_OF_RUNS, SUM_OF_TURNS),
    "runs that used nothing have zeros": (
        f"""select tenant, run_id, {_sum(FIGURES + CALLS)} from agent_ops.agent_run_metrics m
        where not exists (select from agent_ops.agent_turn_metrics t where t.tenant = m.tenant and t.run_id = m.run_id)
        group by 1, 2 having sum({" + ".join(FIGURES + CALLS)}) <> 0""",
        "select null::text, null::uuid, " + ", ".join("0::numeric" for _ in FIGURES + CALLS) + " where false",
    ),
    "runs count their reviews": (
        f"""select tenant, run_id, {_sum(REVIEWS)} from agent_ops.agent_run_metrics
        where reviews_asked <> 0 group by 1, 2""",
        """select tenant, run_id, count(*)::numeric, count(*) filter (where status = 'decided')::numeric,
        count(*) filter (where status = 'closed')::numeric,
        coalesce(sum(greatest(extract(epoch from ended_at - created_at), 0)) filter (where status = 'decided'), 0)
        from agent_ops.agent_reviews group by 1, 2""",
    ),
    "the run's own totals are those of its figures": (
        "select tenant, run_id, tokens_in, tokens_out, cost from agent_ops.agent_runs where tokens_in + tokens_out > 0",
        """select tenant, run_id, tokens_in, tokens_out, cost from agent_ops.agent_run_metrics
        where tokens_in + tokens_out > 0""",
    ),
    "a run is rolled up when it has ended, and only then": (
        f"select tenant, run_id from agent_ops.agent_runs where status in {ENDED}",
        "select tenant, run_id from agent_ops.agent_run_metrics where rolled_up",
    ),
    "workflows are the sum of their ended runs": (
        f"select {KEY}, runs, run_seconds, {', '.join(WHOLE)} from agent_ops.agent_workflow_metrics",
        f"""select r.tenant, r.workflow_name, r.workflow_version, date_trunc('hour', r.created_at, 'UTC'), r.status,
        coalesce(r.outcome, ''), agent_ops.roll_up_slot(r.run_id), count(*),
        sum(greatest(extract(epoch from r.ended_at - r.created_at), 0)), {_sum(WHOLE, "m.")}
        from agent_ops.agent_runs r
        join agent_ops.agent_run_metrics m on m.tenant = r.tenant and m.run_id = r.run_id
        where r.status in {ENDED} group by 1, 2, 3, 4, 5, 6, 7""",
    ),
    "totals are the sum of the hours": (
        f"""select tenant, workflow_name, status, outcome, slot, runs, run_seconds, {", ".join(WHOLE)}
        from agent_ops.agent_workflow_totals""",
        f"""select tenant, workflow_name, status, outcome, slot, sum(runs), sum(run_seconds), {_sum(WHOLE)}
        from agent_ops.agent_workflow_metrics group by 1, 2, 3, 4, 5""",
    ),
    "operations are the sum of all attempts": (
        f"select tenant, kind, name, slot, {', '.join(FIGURES)} from agent_ops.agent_operation_metrics",
        f"""select a.tenant, s.kind, s.name, agent_ops.roll_up_slot(a.run_id), {OF_ATTEMPTS}
        from agent_ops.agent_step_attempts a
        join agent_ops.agent_steps s on s.tenant = a.tenant and s.step_id = a.step_id where a.outcome is not null
        group by 1, 2, 3, 4""",
    ),
}


async def assert_books_balance(db: Database) -> None:
    """Every level is the sum of the one below; what differs is shown from both sides."""
    for what, (stored, expected) in DIFFERENCES.items():
        found: list[dict[str, Any]] = [
            *await fetch(db, f"({stored}) except ({expected})"),
            *await fetch(db, f"({expected}) except ({stored})"),
        ]
        assert found == [], what
