"""The transcript: positions without holes, content as it was."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from casework.agents.messages import Message, Request
from casework.errors import ConflictError
from casework.store import messages
from casework.store.database import Database
from casework.store.results import NOOP, WRITTEN, WriteResult
from tests.integration.store.cases import TENANT, fetch

CALLS = (Request("c1", "credit_check", {"amount": Decimal("12.10")}), Request("c2", "income", ["not", "an", "object"]))


async def write(db: Database, run_id: UUID, position: int, role: str = "user", **changes: Any) -> WriteResult:
    fields = {"path": f"underwrite.1/m.{position}", "agent": "underwriter", "content": f"text {position}"}
    async with db.transaction() as conn:
        return await messages.write(conn, TENANT, run_id, position=position, role=role, **{**fields, **changes})


async def read(db: Database, run_id: UUID, up_to: int, agent: str = "underwriter") -> list[Message]:
    async with db.transaction() as conn:
        return await messages.transcript(conn, TENANT, run_id, up_to, agent)


async def test_transcript_is_what_was_written(db: Database, run_id: UUID) -> None:
    """DA-28. Messages come back in order with requests, parts and digits as they were."""
    await write(db, run_id, 1)
    await write(db, run_id, 2, "assistant", requests=CALLS, parts={"kind": "response", "n": Decimal("1.50")})
    await write(db, run_id, 3, "tool", content='{"score":665}', call_id="c1", tool="credit_check")
    found = await read(db, run_id, 3)
    assert found == [
        Message(1, "underwriter", "user", "text 1"),
        Message(2, "underwriter", "assistant", "text 2", CALLS, parts={"kind": "response", "n": Decimal("1.50")}),
        Message(3, "underwriter", "tool", '{"score":665}', call_id="c1", tool="credit_check"),
    ]
    assert str(found[1].requests[0].arguments["amount"]) == "12.10"
    assert len(await read(db, run_id, 2)) == 2


async def test_same_message_again_is_a_noop(db: Database, run_id: UUID) -> None:
    """DA-28. A step that commits again writes its message once; other content is a conflict."""
    for expected in (WRITTEN, NOOP):
        assert await write(db, run_id, 1, "assistant", requests=CALLS, parts={"a": Decimal("1.0")}) == expected
    for change in ({"content": "other"}, {"requests": CALLS[:1]}, {"parts": None}, {"agent": "second"}):
        with pytest.raises(ConflictError, match="Position 1"):
            await write(db, run_id, 1, "assistant", **{"requests": CALLS, "parts": {"a": Decimal("1.0")}, **change})


@pytest.mark.parametrize(("there", "up_to", "hole"), [([], 1, 1), ([1, 3], 3, 2), ([2, 3], 3, 1), ([1, 2], 4, 3)])
async def test_hole_is_an_error(db: Database, run_id: UUID, there: list[int], up_to: int, hole: int) -> None:
    """DA-28. A missing position at or below `up_to` is an error that names it, never a prompt with a hole."""
    for position in there:
        await write(db, run_id, position)
    with pytest.raises(ConflictError, match=f"no message at position {hole}"):
        await read(db, run_id, up_to)


async def test_messages_of_other_agents_and_notes_fill_positions(db: Database, run_id: UUID) -> None:
    """DA-28. An agent reads its own messages; another's and notes are no holes, and are not in its prompt."""
    await write(db, run_id, 1)
    await write(db, run_id, 2, agent="second")
    await write(db, run_id, 3, "note", content="the call failed")
    await write(db, run_id, 4)
    assert [one.position for one in await read(db, run_id, 4)] == [1, 4]
    assert [one.position for one in await read(db, run_id, 4, "second")] == [2]
    assert await read(db, run_id, 0) == []
    async with db.transaction() as conn:
        shown = await messages.page(conn, TENANT, run_id, after=1, limit=2)
    assert [(row.position, row.role) for row in shown] == [(2, "user"), (3, "note")]


async def test_request_of_a_tool_is_found_by_place(db: Database, run_id: UUID) -> None:
    """Activities get (position, index); the arguments come from the transcript. What is not there is a conflict."""
    await write(db, run_id, 1)
    await write(db, run_id, 2, "assistant", requests=CALLS)
    async with db.transaction() as conn:
        assert await messages.tool_request(conn, TENANT, run_id, 2, 1) == CALLS[1]
        assert await messages.arguments(conn, TENANT, run_id, 2, 0) == {"amount": Decimal("12.10")}
        for position, index in ((2, 2), (2, -1), (1, 0), (9, 0)):
            with pytest.raises(ConflictError, match=f"Message {position} .* number {index}"):
                await messages.tool_request(conn, TENANT, run_id, position, index)


async def test_text_that_postgres_cannot_hold(db: Database, run_id: UUID) -> None:
    """NUL, lone surrogates, NaN and Infinity are replaced by rule and counted on the row; nothing else is changed."""
    odd = {"n": float("nan"), "inf": Decimal("-Infinity"), "k\x00": "\ud83d", "ok": "\U0001f600 \u00e9 \u202e"}
    await write(
        db, run_id, 1, "assistant", content="a\x00b", requests=[{"call_id": "c", "name": "t", "arguments": odd}]
    )
    assert (
        await write(
            db, run_id, 1, "assistant", content="a\x00b", requests=[{"call_id": "c", "name": "t", "arguments": odd}]
        )
        == NOOP
    )
    found = (await read(db, run_id, 1))[0]
    assert found.content == "a\u2400b"
    assert found.requests[0].arguments == {
        "n": "NaN",
        "inf": "-Infinity",
        "k\u2400": "\ufffd",
        "ok": "\U0001f600 \u00e9 \u202e",
    }
    assert await fetch(db, "select cleaned from agent_ops.agent_messages") == [{"cleaned": 5}]


async def test_large_message(db: Database, run_id: UUID) -> None:
    """Two megabytes of text and a request of the same size come back whole."""
    text = "\u00e9" * 1_000_000
    call = Request("c", "t", {"text": text})
    await write(db, run_id, 1, "assistant", content=text, requests=[call])
    found = (await read(db, run_id, 1))[0]
    assert found.content == text
    assert found.requests == (call,)
