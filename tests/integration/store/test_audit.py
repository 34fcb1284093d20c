"""The audit trail and the figures: a whole case written as the workers write it, then read back from the rows alone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.errors import InputError
from casework.projection import ContextEntry, Entry, LogEntry, StepEntry
from casework.store import audit, ledger, messages, metrics, policy, runs, steps
from casework.store.database import Database
from casework.values import dumps, loads
from tests.integration.store.cases import (
    PATH,
    START,
    TENANT,
    apply,
    at,
    claim,
    commit,
    decision,
    done,
    event,
    execute,
    new_run,
    review,
    running,
    tool_claim,
)
from tests.integration.store.test_policy import limits, load, read

MODEL = "underwrite.1/exchange.1/model.1"
LATER = "underwrite.2/exchange.1/model.1"


async def tell_the_case(db: Database, owner_db: Database, run_id: UUID) -> None:
    """Two turns: a model call, a tool with a failed and a lost attempt, more_info, a stale answer, an approval."""
    await load(owner_db, limits())
    row = await read(db)
    assert row is not None
    async with db.transaction() as conn:
        await policy.pin(conn, TENANT, run_id, "car", None, row)
    await apply(db, run_id, running(1), event("agent.started", ""))
    await claim(db, tool_claim(run_id, MODEL, kind="model", name="model"))
    await commit(db, done(run_id, 1, MODEL, result={"asks": 1}, tokens_in=900, tokens_out=80, cost=Decimal("0.0123")))
    async with db.transaction() as conn:
        for position, role in enumerate(("user", "assistant", "tool"), start=1):
            await messages.write(conn, TENANT, run_id, path=MODEL, position=position, agent="a", role=role, content="x")
    await claim(db, tool_claim(run_id))
    async with db.transaction() as conn:
        await ledger.attempt_failed(conn, TENANT, run_id, PATH, 1, "503", 20)
    await claim(db, tool_claim(run_id))
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 3))
    more = decision(run_id, command="more_info", outcome=None)
    await apply(db, run_id, ContextEntry("underwrite.1", "memo", 1, {"action": "refer"}, at(9)), review(run_id), more)
    await claim(db, tool_claim(run_id, LATER, kind="model", name="model", turn=2))
    await commit(db, done(run_id, 1, LATER, tokens_in=100, cost=Decimal("0.0020")))
    stale = decision(run_id, decision_id="d-0", accepted=False, ignored="review is not the current one", outcome=None)
    lost = decision(run_id, review_id="junk", decision_id="d-9", accepted=False, ignored="no such review", outcome=None)
    second = review(run_id, "decision.2", turn=2, at=at(60))
    await apply(db, run_id, second, running(2, status="AWAITING_REVIEW"), stale, lost)
    end: list[Entry] = [
        StepEntry("decision.2", "decision", "decision", "COMPLETED", at(90), {"command": "approve"}),
        decision(run_id, "decision.2", decision_id="d-2", at=at(90)),
        LogEntry("decision.2", "decision", "INFO", "approved", at(90)),
        running(3, status="COMPLETED", outcome="approved", turn=2, at=at(91)),
    ]
    await apply(db, run_id, *end)


async def test_run_is_reconstructed_from_postgres_alone(db: Database, owner_db: Database, run_id: UUID) -> None:
    """DA-6. DA-46. Policy version, evidence with attempts, wait, recommendations, decisions, events: plain data."""
    await tell_the_case(db, owner_db, run_id)
    async with db.transaction() as conn:
        trail = await audit.trail(conn, TENANT, run_id)
    assert trail is not None
    told = loads(dumps(trail.to_plain()))
    assert told == trail.to_plain()
    assert (told["run"]["status"], told["run"]["outcome"], told["run"]["cost"]) == (
        "COMPLETED",
        "approved",
        Decimal("0.0143"),
    )
    assert [(use["purpose"], use["version"], use["row"]["limits"]["min_score"]) for use in told["policies"]] == [
        ("car", 3, 700)
    ]
    assert [step["result"] for step in told["evidence"]] == [{"score": 665}]
    assert told["evidence"][0]["arguments"] == {"applicant_id": "A-1"}
    assert [attempt["outcome"] for attempt in told["evidence"][0]["attempts"]] == ["FAILED", "LOST", "COMPLETED"]
    assert [step["path"] for step in told["model_calls"]] == [MODEL, LATER]
    assert [step["result"] for step in told["decision_steps"]] == [{"command": "approve"}]
    assert [(asked["status"], asked["waited_seconds"]) for asked in told["reviews"]] == [
        ("decided", 600),
        ("decided", 1800),
    ]
    assert {given["decision_id"]: given["accepted"] for asked in told["reviews"] for given in asked["given"]} == {
        "d-1": True,
        "d-0": False,
        "d-2": True,
    }
    assert [given["decision_id"] for given in told["stray_decisions"]] == ["d-9"]
    assert told["reviews"][0]["recommendation"] == {"action": "refer"}
    assert [row["position"] for row in told["transcript"]] == [1, 2, 3]
    assert [row["seq"] for row in told["events"]] == list(range(1, len(told["events"]) + 1))
    assert [row["message"] for row in told["logs"]] == ["approved"]
    assert told["context"][0]["value"] == {"action": "refer"}


async def test_trail_is_one_snapshot_and_of_one_tenant(db: Database, run_id: UUID) -> None:
    """What is written while the trail is read is not half in it; another tenant's run is none."""
    await apply(db, run_id, running(1), event("a"))
    async with db.transaction() as conn:
        assert await audit.trail(conn, "other", run_id) is None
    async with db.transaction() as conn:
        before = await audit.trail(conn, TENANT, run_id)
        await apply(db, run_id, event("b"))
        assert await runs.events(conn, TENANT, run_id) != []
        assert before is not None
        assert len(await runs.events(conn, TENANT, run_id)) == len(before.events) == 1


async def test_long_history_is_read_whole(db: Database, run_id: UUID) -> None:
    """More events than one page holds are all in the trail."""
    await apply(db, run_id, *(event(f"k{number}") for number in range(1, 1002)))
    async with db.transaction() as conn:
        trail = await audit.trail(conn, TENANT, run_id)
    assert trail is not None
    assert [row["seq"] for row in trail.events] == list(range(1, 1002))


async def test_roll_ups_by_run_and_turn(db: Database, owner_db: Database, run_id: UUID) -> None:
    """DA-29. DA-30. Tokens, money, calls and attempts of the run and of each turn, each attempt counted once."""
    await tell_the_case(db, owner_db, run_id)
    async with db.transaction() as conn:
        run = await metrics.of_run(conn, TENANT, run_id)
        turns = {row.turn: row for row in await metrics.of_turns(conn, TENANT, run_id)}
        nothing = await metrics.of_run(conn, TENANT, uuid4())
    assert (run.model_calls, run.tool_calls, run.tokens_in, run.cost) == (2, 1, 1000, Decimal("0.0143"))
    assert (run.attempts_completed, run.attempts_failed, run.attempts_lost, run.attempts_late) == (3, 1, 1, 0)
    assert run.latency_ms == 40 + 20 + 40 + 40
    assert (turns[1].tokens_in, turns[2].tokens_in, turns[2].cost) == (900, 100, Decimal("0.0020"))
    assert nothing.model_calls == 0


async def test_figures_of_workflows(db: Database, owner_db: Database, run_id: UUID) -> None:
    """DA-30. DA-31. Counts by state and outcome, tokens, money and mean time, from the roll-up rows."""
    await execute(db, "update agent_ops.agent_runs set created_at = %s where run_id = %s", at(90), run_id)
    await tell_the_case(db, owner_db, run_id)
    failed = uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(failed, workflow_name="intake"))
    await apply(db, failed, running(1, status="FAILED", failure="x"))
    async with db.transaction() as conn:
        found = {row.workflow_name: row for row in await metrics.workflows(conn, TENANT, START - timedelta(days=1))}
        only = await metrics.workflows(conn, TENANT, START - timedelta(days=1), "intake")
        assert await metrics.workflows(conn, "other", START) == []
    loan = found["loan-underwriting"]
    assert (loan.runs, loan.completed, loan.outcomes) == (1, 1, {"approved": 1})
    assert (loan.tokens_in, loan.cost, loan.mean_seconds) == (1000, Decimal("0.0143"), Decimal(60))
    assert [(row.workflow_name, row.failed) for row in only] == [("intake", 1)]


async def test_figures_of_retries(db: Database, owner_db: Database, run_id: UUID) -> None:
    """DA-31. DA-32. Which tools and models fail, are lost or come late, and whether that is still going on."""
    await tell_the_case(db, owner_db, run_id)
    async with db.transaction() as conn:
        assert await metrics.retries(conn, TENANT, START + timedelta(days=36_500)) == []
        (credit,) = await metrics.retries(conn, TENANT, START)
    assert (credit.kind, credit.name, credit.failed, credit.lost, credit.late) == ("tool", "credit_check", 1, 1, 0)
    assert (credit.steps, credit.retrying, credit.given_up) == (1, 0, 0)


async def test_readers_can_tell_the_states_apart(db: Database) -> None:
    """DA-32. At one moment one run collects evidence, one awaits a person, one tries a tool again, one gave up."""
    collecting, waiting, retrying, broken = (uuid4() for _ in range(4))
    for one in (collecting, waiting, retrying, broken):
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(one))
        await apply(db, one, running(1))
        await claim(db, tool_claim(one))
    await commit(db, done(waiting, 1))
    await apply(db, waiting, review(waiting), running(2, status="AWAITING_REVIEW"))
    async with db.transaction() as conn:
        await ledger.attempt_failed(conn, TENANT, retrying, PATH, 1, "503 from the bureau", 9)
    await commit(db, done(broken, 1, state="FAILED", result=None, error="no such applicant"))

    async def seen(run_id: UUID) -> Any:
        async with db.transaction() as conn:
            detail = await runs.detail(conn, TENANT, run_id)
        assert detail is not None
        return detail.run.status, detail.steps[0].state, detail.steps[0].error

    assert await seen(collecting) == ("RUNNING", "STARTED", None)
    assert await seen(waiting) == ("AWAITING_REVIEW", "COMPLETED", None)
    assert await seen(retrying) == ("RUNNING", "STARTED", "503 from the bureau")
    assert await seen(broken) == ("RUNNING", "FAILED", "no such applicant")


@pytest.mark.parametrize("limit", [0, 501])
async def test_limits_hold_everywhere(db: Database, run_id: UUID, limit: int) -> None:
    """Every list refuses a limit out of range."""
    for asked in (
        lambda conn: runs.events(conn, TENANT, run_id, 0, limit),
        lambda conn: runs.logs(conn, TENANT, run_id, 0, limit),
        lambda conn: messages.page(conn, TENANT, run_id, 0, limit),
        lambda conn: steps.page_of_run(conn, TENANT, run_id, None, limit),
    ):
        async with db.transaction() as conn:
            with pytest.raises(InputError, match="is not between 1 and 500"):
                await asked(conn)
