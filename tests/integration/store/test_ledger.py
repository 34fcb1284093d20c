"""The ledger, one step at a time: claim, commit, fail, lose, come late."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework import ids
from casework.errors import ConflictError
from casework.projection import StepEntry
from casework.store import ledger, metrics, runs, steps, totals
from casework.store.database import Database
from casework.store.results import NOOP, STALE, WRITTEN, WriteResult
from casework.values import dumps, loads
from tests.integration.store.cases import (
    PATH,
    START,
    TENANT,
    apply,
    at,
    claim,
    commit,
    done,
    execute,
    fetch,
    new_run,
    running,
    tool_claim,
)


async def attempts(db: Database) -> list[tuple[int, str | None]]:
    rows = await fetch(db, "select attempt, outcome from agent_ops.agent_step_attempts order by attempt")
    return [(row["attempt"], row["outcome"]) for row in rows]


async def kinds(db: Database) -> list[str]:
    return [row["kind"] for row in await fetch(db, "select kind from agent_ops.agent_events order by seq")]


async def fail(db: Database, run_id: UUID, attempt: int, error: str = "503 from the bureau") -> WriteResult:
    async with db.transaction() as conn:
        return await ledger.attempt_failed(conn, TENANT, run_id, PATH, attempt, error, 70)


async def test_claim_act_commit(db: Database, run_id: UUID) -> None:
    """DA-24. A step is STARTED by its claim and COMPLETED by its commit, with result, attempt and times."""
    claimed = await claim(db, tool_claim(run_id))
    assert claimed == ledger.Claimed(ids.step_id(run_id, PATH), 1, "claimed")
    assert await commit(db, done(run_id, 1)) == WRITTEN
    async with db.transaction() as conn:
        step = (await runs.steps(conn, TENANT, run_id))[0]
        attempt = (await runs.attempts(conn, TENANT, run_id))[0]
    assert (step.state, step.attempt, step.result, step.arguments) == (
        "COMPLETED",
        1,
        {"score": 665},
        {"applicant_id": "A-1"},
    )
    assert step.ended_at is not None
    assert (attempt.outcome, attempt.latency_ms, attempt.result) == ("COMPLETED", 40, None)


async def test_committed_result_is_returned_and_not_acted_on_again(db: Database, run_id: UUID) -> None:
    """DA-26. A repeat after the commit gets the result from the ledger, and opens no attempt."""
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 1))
    again = await claim(db, tool_claim(run_id))
    assert (again.state, again.attempt, again.result) == ("committed", 1, {"score": 665})
    assert await attempts(db) == [(1, "COMPLETED")]


OTHER_ACTS: list[dict[str, Any]] = [
    {"arguments": {"applicant_id": "B"}},
    {"tool_version": "2"},
    {"name": "other"},
    {"kind": "model"},
]


@pytest.mark.parametrize("committed", [True, False])
async def test_another_act_at_the_path_is_a_conflict(db: Database, run_id: UUID, committed: bool) -> None:
    """DA-24. A result is returned only for the same arguments and version; anything else is a conflict."""
    await claim(db, tool_claim(run_id))
    if committed:
        await commit(db, done(run_id, 1))
    for change in OTHER_ACTS:
        with pytest.raises(ConflictError, match="claimed for another act"):
            await claim(db, tool_claim(run_id, **change))
    assert len(await attempts(db)) == 1


async def test_same_arguments_in_another_spelling_are_the_same_act(db: Database, run_id: UUID) -> None:
    """DA-24. The hash is of the canonical arguments: the order of keys says nothing."""
    await claim(db, tool_claim(run_id, arguments={"a": 1, "b": Decimal("2.50")}))
    await commit(db, done(run_id, 1))
    assert (await claim(db, tool_claim(run_id, arguments={"b": Decimal("2.50"), "a": 1}))).state == "committed"


async def test_new_claim_closes_an_unreported_attempt_as_lost(db: Database, run_id: UUID) -> None:
    """DA-25. An attempt of which nothing was heard is LOST when the next one begins, with an event that says so."""
    await claim(db, tool_claim(run_id))
    assert (await claim(db, tool_claim(run_id))).attempt == 2
    assert await attempts(db) == [(1, "LOST"), (2, None)]
    assert await kinds(db) == ["attempt_lost:1"]


async def test_late_result_is_kept_and_never_used(db: Database, run_id: UUID) -> None:
    """DA-24. A commit after a newer claim is stale: its result stays on the attempt as LATE, away from the row."""
    await claim(db, tool_claim(run_id))
    await claim(db, tool_claim(run_id))
    late = done(run_id, 1, result={"score": 1})
    assert await commit(db, late) == WriteResult(1, "stale")
    assert await commit(db, late) == STALE
    assert await commit(db, done(run_id, 2)) == WRITTEN
    assert (await claim(db, tool_claim(run_id))).result == {"score": 665}
    rows = await fetch(db, "select outcome, result from agent_ops.agent_step_attempts order by attempt")
    assert rows == [{"outcome": "LATE", "result": {"score": 1}}, {"outcome": "COMPLETED", "result": None}]
    assert await kinds(db) == ["attempt_lost:1", "attempt_late:1"]


async def test_late_result_after_the_newer_one_committed(db: Database, run_id: UUID) -> None:
    """DA-24. The same when the newer attempt is done already, and even with the same result."""
    await claim(db, tool_claim(run_id))
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 2))
    assert (await commit(db, done(run_id, 1))).outcome == "stale"
    assert await attempts(db) == [(1, "LATE"), (2, "COMPLETED")]


async def test_commit_twice_is_one_row(db: Database, run_id: UUID) -> None:
    """DA-26. Commit, lose the acknowledgement, commit again: a no-op, counted once; another result is a conflict."""
    await claim(db, tool_claim(run_id))
    end = done(run_id, 1, tokens_in=10, cost=Decimal("0.0020"))
    assert [await commit(db, end), await commit(db, end)] == [WRITTEN, NOOP]
    with pytest.raises(ConflictError, match="another result"):
        await commit(db, done(run_id, 1, result={"score": 700}))
    async with db.transaction() as conn:
        used = await metrics.of_run(conn, TENANT, run_id)
        run = await runs.get(conn, TENANT, run_id)
    assert (used.tool_calls, used.attempts_completed, used.tokens_in, used.cost) == (1, 1, 10, Decimal("0.0020"))
    assert run is not None
    assert (run.tokens_in, run.cost) == (10, Decimal("0.0020"))


async def test_engine_gives_a_step_up(db: Database, run_id: UUID) -> None:
    """DA-25. The run's next write closes the row FAILED; what the attempt commits afterwards is LATE."""
    await claim(db, tool_claim(run_id))
    given_up = StepEntry(PATH, "tool", "credit_check", "FAILED", at(3), error="3 attempts used")
    assert await apply(db, run_id, given_up) == [WRITTEN]
    assert await apply(db, run_id, given_up) == [NOOP]
    assert await attempts(db) == [(1, "LOST")]
    assert (await commit(db, done(run_id, 1))).outcome == "stale"
    assert await attempts(db) == [(1, "LATE")]
    closed = await claim(db, tool_claim(run_id))
    assert (closed.state, closed.error, closed.attempt) == ("closed", "3 attempts used", 1)


async def test_engine_gives_up_what_was_committed_after_all(db: Database, run_id: UUID) -> None:
    """DA-25. The commit was first and its acknowledgement lost: the close is a no-op and the result stands."""
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 1))
    assert await apply(db, run_id, StepEntry(PATH, "tool", "credit_check", "FAILED", at(3), error="lost")) == [NOOP]
    assert (await claim(db, tool_claim(run_id))).state == "committed"


async def test_step_that_the_run_refused_is_closed_from_the_start(db: Database, run_id: UUID) -> None:
    """DA-29. A row that the workflow writes itself has no attempt; a claim of it finds it closed."""
    await apply(db, run_id, StepEntry(PATH, "tool", "credit_check", "FAILED", at(3), error="not on the agent's list"))
    assert (await claim(db, tool_claim(run_id))).state == "closed"
    assert await attempts(db) == []


async def test_failure_that_is_tried_again_shows(db: Database, run_id: UUID) -> None:
    """DA-32. Between two attempts the row is STARTED with the error; afterwards the attempts tell the story."""
    await claim(db, tool_claim(run_id))
    assert [await fail(db, run_id, 1), await fail(db, run_id, 1)] == [WRITTEN, NOOP]
    async with db.transaction() as conn:
        (retrying,) = (await steps.page(conn, steps.Wanted(TENANT, "retrying", START))).rows
    assert (retrying.state, retrying.attempt, retrying.error) == ("STARTED", 1, "503 from the bureau")
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 2))
    assert await attempts(db) == [(1, "FAILED"), (2, "COMPLETED")]
    assert await kinds(db) == ["attempt_failed:1"]
    row = (await fetch(db, "select state, error from agent_ops.agent_steps"))[0]
    assert row == {"state": "COMPLETED", "error": None}


async def test_failure_reported_too_late(db: Database, run_id: UUID) -> None:
    """DA-24. A failure of a superseded attempt does not touch the row of the newer one."""
    await claim(db, tool_claim(run_id))
    await claim(db, tool_claim(run_id))
    assert (await fail(db, run_id, 1)).outcome == "stale"
    assert await attempts(db) == [(1, "LATE"), (2, None)]
    assert (await fetch(db, "select error from agent_ops.agent_steps"))[0] == {"error": None}


async def test_told_error_ends_the_step(db: Database, run_id: UUID) -> None:
    """DA-18. What the model is told ends the step FAILED, and is not tried again."""
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 1, state="FAILED", result=None, error="no such applicant"))
    assert (await claim(db, tool_claim(run_id))).error == "no such applicant"


@pytest.mark.parametrize("attempt", [0, 1, 2, -1])
async def test_commit_without_a_claim_is_a_conflict(db: Database, run_id: UUID, attempt: int) -> None:
    """DA-25. Neither a step that nobody claimed nor an attempt that nobody took can be committed."""
    with pytest.raises(ConflictError, match="Nothing claimed attempt"):
        await commit(db, done(run_id, attempt))
    if attempt != 1:
        await claim(db, tool_claim(run_id))
        with pytest.raises(ConflictError, match="Nothing claimed attempt"):
            await commit(db, done(run_id, attempt))


async def test_ended_run_starts_no_step(db: Database, run_id: UUID) -> None:
    """DA-24. A worker that comes after the run was closed is told so; what was in flight is FAILED, its result LATE."""
    await claim(db, tool_claim(run_id))
    await apply(db, run_id, running(1, status="CANCELLED"))
    assert (await commit(db, done(run_id, 1))).outcome == "stale"
    assert (await claim(db, tool_claim(run_id))).state == "closed"
    fresh = await claim(db, tool_claim(run_id, path="underwrite.2/exchange.1/credit_check.1"))
    assert (fresh.state, fresh.error) == ("closed", "the run is CANCELLED")
    assert len(await fetch(db, "select 1 from agent_ops.agent_steps")) == 1


async def test_claim_for_no_run_is_a_conflict(db: Database) -> None:
    """A run is written before its first step."""
    with pytest.raises(ConflictError, match="has no row"):
        await claim(db, tool_claim(uuid4()))


async def test_evidence_is_the_latest_completed_result_of_each_tool(db: Database, run_id: UUID) -> None:
    """DA-9. What a later tool may look at: completed tools by name, the newest, no model call, nothing that failed."""
    for number, (name, state) in enumerate([("credit", "COMPLETED"), ("income", "FAILED"), ("credit", "COMPLETED")]):
        path = f"underwrite.1/exchange.{number + 1}/{name}.1"
        await claim(db, tool_claim(run_id, path, name=name))
        await commit(db, done(run_id, 1, path, state=state, result={"n": number}))
    await claim(db, tool_claim(run_id, "underwrite.1/exchange.9/model.1", kind="model", name="model"))
    await commit(db, done(run_id, 1, "underwrite.1/exchange.9/model.1"))
    async with db.transaction() as conn:
        case = await ledger.case_of(conn, TENANT, run_id)
        nothing = await ledger.case_of(conn, TENANT, uuid4())
    assert case.evidence == {"credit": {"n": 2}}
    assert case.request
    assert nothing == ledger.Case(None, {})


async def test_figures_that_no_column_holds_lose_no_result(db: Database, run_id: UUID) -> None:
    """Negative times and prices that are no numbers become 0, and the attempt's row counts it."""
    await claim(db, tool_claim(run_id))
    odd = done(run_id, 1, latency_ms=-5, tokens_in=2**80, cost=Decimal("NaN"))
    assert await commit(db, odd) == WRITTEN
    row = (await fetch(db, "select latency_ms, tokens_in, cost, cleaned from agent_ops.agent_step_attempts"))[0]
    assert row == {"latency_ms": 0, "tokens_in": 10**9, "cost": 0, "cleaned": 3}


async def test_sums_that_no_column_holds_are_read_all_the_same(db: Database, admin_db: Database) -> None:
    """DA-29. One run with absurd figures, from before they were bounded, takes nobody's metrics away."""
    for _ in range(2):
        made = uuid4()
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(made))
        await claim(db, tool_claim(made))
        await commit(db, done(made, 1, tokens_in=1, latency_ms=1))
    huge = f"tokens_in = {2**62}, tokens_out = {2**62}, latency_ms = {2**62}"
    await execute(admin_db, f"update agent_ops.agent_run_metrics set {huge}")
    await execute(admin_db, f"update agent_ops.agent_operation_metrics set {huge}")
    async with db.transaction() as conn:
        found = await totals.read(conn)
    async with db.transaction() as conn:
        (figures,) = await metrics.workflows(conn, TENANT, datetime(2020, 1, 1, tzinfo=UTC), None, None)
    assert [each.tokens_in for each in found.live] == [2**63]
    assert (figures.tokens_in, figures.tokens_out, figures.latency_ms) == (2**63, 2**63, 2**63)
    assert loads(dumps(figures))["tokens_in"] == 2**63


async def test_lock_attempt_lets_only_the_current_attempt_act(db: Database, run_id: UUID) -> None:
    """DA-27. A transactional tool acts only while its attempt is the row's own and the run is open."""
    await claim(db, tool_claim(run_id))
    await claim(db, tool_claim(run_id))

    async def may(attempt: int) -> bool:
        async with db.transaction() as conn:
            return await ledger.lock_attempt(conn, TENANT, run_id, PATH, attempt)

    assert [await may(1), await may(2), await may(3)] == [False, True, False]
    await commit(db, done(run_id, 2))
    assert not await may(2)
