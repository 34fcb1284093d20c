"""The books of runs: what several rows together show, found where it is wrong."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from casework.projection import MessageEntry
from casework.store import books, messages, projection, runs
from casework.store.database import Database
from tests.integration.store.cases import (
    PATH,
    TENANT,
    apply,
    at,
    claim,
    commit,
    done,
    execute,
    new_run,
    review,
    running,
    tool_claim,
)

MODEL = "underwrite.1/exchange.1/model.1"
TOOLS = ["credit_check"]


@pytest.fixture
async def whole(db: Database, run_id: UUID) -> UUID:
    """A run that asked its model and a tool, and awaits its review."""
    await apply(db, run_id, running(1))
    asked = await claim(db, tool_claim(run_id, MODEL, kind="model", name="model"))
    await _commit(db, run_id, MODEL, asked.attempt, "agent.model_answered", "assistant", 1)
    called = await claim(db, tool_claim(run_id))
    await _commit(db, run_id, PATH, called.attempt, "agent.tool_completed", "tool", 2)
    await apply(db, run_id, review(run_id), running(2, status="AWAITING_REVIEW"))
    async with db.transaction() as conn:
        await projection.add_event(conn, TENANT, run_id, "decision.1", "agent.review_pending", {})
    return run_id


async def _commit(db: Database, run_id: UUID, path: str, attempt: int, event: str, role: str, position: int) -> None:
    await commit(db, done(run_id, attempt, path))
    async with db.transaction() as conn:
        answers = "c-1" if role == "tool" else None
        await messages.write(
            conn, TENANT, run_id, path=path, position=position, agent="a", role=role, content="x", call_id=answers
        )
        await projection.add_event(conn, TENANT, run_id, path, event, {})


async def kinds(db: Database, *wanted: UUID, tools: list[str] = TOOLS) -> set[str]:
    async with db.transaction() as conn:
        return {fault.what for fault in await books.faults(conn, TENANT, wanted, tools)}


async def test_a_run_that_is_whole_has_no_fault(admin_db: Database, whole: UUID) -> None:
    """DA-28. Transcript, results and events of every step are there together; so are roll-ups and review."""
    assert await kinds(admin_db, whole) == set()
    async with admin_db.transaction() as conn:
        told = await books.totals(conn, TENANT)
    assert (told.runs, told.steps, told.attempts, told.messages, told.reviews_pending) == (1, 2, 2, 2, 1)


async def test_a_run_that_is_missing_or_that_nobody_asked_for(admin_db: Database, db: Database, whole: UUID) -> None:
    missing, unasked = uuid4(), uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(unasked))
    assert await kinds(admin_db, whole, missing) == {"run_missing", "run_unasked"}


async def test_a_tool_without_a_result_is_missing_evidence(admin_db: Database, whole: UUID) -> None:
    assert await kinds(admin_db, whole, tools=["credit_check", "policy_lookup"]) == {"evidence_missing"}


async def test_a_step_in_flight_is_open(admin_db: Database, db: Database, whole: UUID) -> None:
    """An attempt without an outcome, at a step that has not ended."""
    await claim(db, tool_claim(whole, "underwrite.1/exchange.1/credit_check.2"))
    assert {"step_open", "attempt_open"} <= await kinds(admin_db, whole)


async def test_a_note_stands_for_a_message_that_never_came(admin_db: Database, db: Database, whole: UUID) -> None:
    await apply(db, whole, MessageEntry(MODEL, 3, "a", "note", "no message", at(5)))
    assert await kinds(admin_db, whole) == {"message_note"}


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("delete from agent_ops.agent_messages where position = 1", {"transcript_hole", "message_count"}),
        ("delete from agent_ops.agent_events where seq = 1", {"event_hole", "event_count"}),
        ("delete from agent_ops.agent_step_attempts where step_id = (select max(step_id::text)::uuid from "
         "agent_ops.agent_steps)", {"result_twice", "metrics_count"}),
        ("delete from agent_ops.agent_reviews", {"review_count", "event_count"}),
        ("update agent_ops.agent_run_metrics set attempts_lost = 7", {"metrics_count"}),
    ],
)  # fmt: skip
async def test_a_row_that_is_not_there_is_found(
    admin_db: Database, whole: UUID, statement: str, found: set[str]
) -> None:
    """Even where it was taken away behind all guards."""
    await execute(admin_db, "alter table agent_ops.agent_reviews disable trigger user")
    await execute(admin_db, statement)
    assert await kinds(admin_db, whole) >= found
