"""DA-30. What figures read: the plans of every query behind them, over tables that hold far more history than work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from casework.store import queries
from casework.testing.databases import Databases
from tests.integration.store.cases import START, TENANT

RUNS, OPEN, BAD = 20_000, 200, 200
HISTORY = {
    "agent_runs",
    "agent_run_metrics",
    "agent_turn_metrics",
    "agent_steps",
    "agent_step_attempts",
    "agent_reviews",
}
"""Tables that grow with the work; none may be read as a whole."""

FILL = [
    "set session_replication_role = replica",
    f"""insert into agent_ops.agent_runs (
        run_id, status, temporal_workflow_id, workflow_name, workflow_version, user_id, actor, request, request_hash,
        turn_limit, created_at, ended_at, failure)
    select md5(n::text)::uuid, case when n > {RUNS - OPEN} then 'AWAITING_REVIEW' else 'FAILED' end, n, 'w', 1, 'u',
           'u', '{{"a": 1}}', 'h', 5, now() - interval '30 days' + n * interval '100 s',
           case when n > {RUNS - OPEN} then null else now() end, 'x'
    from generate_series(1, {RUNS}) n""",
    """insert into agent_ops.agent_run_metrics (run_id, tool_calls, rolled_up)
    select run_id, 1, status = 'FAILED' from agent_ops.agent_runs""",
    """insert into agent_ops.agent_steps (
        step_id, run_id, path, kind, name, state, attempt, started_at, updated_at, ended_at, hash)
    select run_id, run_id, 'p', 'tool', 'x', case when status = 'FAILED' then 'COMPLETED' else 'STARTED' end, 1,
           created_at, created_at, ended_at, 'h' from agent_ops.agent_runs""",
    f"""insert into agent_ops.agent_step_attempts (step_id, attempt, run_id, outcome, started_at, ended_at)
    select run_id, 1, run_id, case when n % {RUNS // BAD} = 0 then 'LOST' else 'COMPLETED' end, created_at, now()
    from (select *, row_number() over () as n from agent_ops.agent_runs) r""",
    """insert into agent_ops.agent_reviews (
        review_id, run_id, path, node, turn, decisions, created_at, status, ended_at)
    select run_id, run_id, 'd', 'd', 1, '[]', created_at,
           case when status = 'FAILED' then 'closed' else 'pending' end, ended_at from agent_ops.agent_runs""",
    "analyze agent_ops.agent_runs, agent_ops.agent_run_metrics, agent_ops.agent_steps",
    "analyze agent_ops.agent_step_attempts, agent_ops.agent_reviews",
]
WINDOW = {"tenant": TENANT, "since": START, "workflow": None}
ASKED: dict[str, dict[str, Any]] = {
    "metrics.workflows": {**WINDOW, "by": "hour", "series": False},
    "metrics.retries": WINDOW,
    "totals.ended": {},
    "totals.live": {},
    "totals.waiting": {},
    "totals.operations": {},
    "totals.in_flight": {},
}


@pytest.fixture(scope="module")
def filled(casework_databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    """A database of 20,000 runs, of which 200 are open and 200 had trouble."""
    with casework_databases.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        for statement in FILL:
            conn.execute(statement.encode())
        yield conn


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.parametrize("name", ASKED)
def test_no_figure_reads_history(filled: psycopg.Connection[Any], name: str) -> None:
    """DA-30. Even over all time: rows of history are reached by index, and only those that are open or had trouble."""
    module, query = name.split(".")
    statement = queries.load(module)[query].sql
    found = filled.execute(b"explain (analyze, format json) " + statement, ASKED[name]).fetchone()
    assert found is not None
    read = [node for node in nodes(found[0][0]["Plan"]) if node.get("Relation Name") in HISTORY]
    for node in read:
        assert node["Node Type"] != "Seq Scan", node["Relation Name"]
        rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        assert rows <= max(OPEN, BAD), node


def test_every_query_of_figures_is_asked(filled: psycopg.Connection[Any]) -> None:
    """A new query is looked at too; those of one run have its key."""
    of_one_run = {"metrics.roll_up", "metrics.run_metrics", "metrics.turn_metrics"}
    settings = {"totals.one_snapshot", "totals.bounded"}
    every = {f"{module}.{name}" for module in ("metrics", "totals") for name in queries.load(module)}
    assert every - of_one_run - settings == set(ASKED)
