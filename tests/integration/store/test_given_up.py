"""A step that the run gave up although its result was committed: the last report was lost with its worker."""

from __future__ import annotations

from uuid import UUID

import pytest

from casework.errors import ConflictError
from casework.projection import MessageEntry, StepEntry
from casework.store import messages
from casework.store.database import Database
from tests.integration.store.cases import (
    PATH,
    TENANT,
    apply,
    at,
    claim,
    commit,
    done,
    event,
    fetch,
    running,
    tool_claim,
)


async def commit_with_message(db: Database, run_id: UUID) -> None:
    """What the tool's activity does in its second transaction."""
    claimed = await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, claimed.attempt))
    async with db.transaction() as conn:
        await messages.write(
            conn,
            TENANT,
            run_id,
            path=PATH,
            position=1,
            agent="underwriter",
            role="tool",
            content='{"score":665}',
            call_id="c1",
            tool="credit_check",
        )


def gave_up(path: str = PATH) -> tuple[StepEntry, MessageEntry]:
    """What the run writes when the engine gave the step up."""
    return (
        StepEntry(path, "tool", "credit_check", "FAILED", at(2), error="the worker was lost"),
        MessageEntry(path, 1, "underwriter", "tool", '{"error":"given up"}', at(2), "c1", "credit_check"),
    )


async def test_a_committed_result_stands_over_giving_it_up(db: Database, run_id: UUID) -> None:
    """DA-25, DA-26. The run goes on, and what the model reads is the committed result."""
    await commit_with_message(db, run_id)
    await apply(db, run_id, running(1), *gave_up(), event("agent.tool_failed"))
    step = await fetch(db, "select state, error, result from agent_ops.agent_steps")
    assert step == [{"state": "COMPLETED", "error": None, "result": {"score": 665}}]
    said = await fetch(db, "select content from agent_ops.agent_messages")
    assert said == [{"content": '{"score":665}'}]


async def test_another_steps_message_is_still_a_conflict(db: Database, run_id: UUID) -> None:
    """DA-25. Only the step's own result is given way to."""
    await commit_with_message(db, run_id)
    with pytest.raises(ConflictError, match="Position 1"):
        await apply(db, run_id, *gave_up("underwrite.1/exchange.1/income_verification.1"))
