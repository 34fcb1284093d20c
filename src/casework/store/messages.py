"""The transcript: one row per message, positions without holes, written with the step that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework import ids
from casework.agents.messages import Message, Request, Role
from casework.errors import ConflictError
from casework.store import queries
from casework.store.database import Connection
from casework.store.paging import checked_limit
from casework.store.results import NOOP, WRITTEN, WriteResult
from casework.store.rows import MessageRow
from casework.values import Plain, plain

_SQL = queries.load("messages")
NOTE = "note"
"""The role of a row that stands where a failed step left no message; no model reads it."""


@dataclass(frozen=True, slots=True)
class _Read:
    position: int
    agent: str
    role: Role
    content: str
    requests: Plain
    call_id: str | None
    tool: str | None
    parts: Plain


async def write(
    conn: Connection,
    tenant: str,
    run_id: UUID,
    *,
    path: str,
    position: int,
    agent: str,
    role: str,
    content: str,
    requests: Iterable[Request | Mapping[str, Plain]] = (),
    call_id: str | None = None,
    tool: str | None = None,
    parts: Plain = None,
    at: datetime | str | None = None,
    yields: bool = False,
) -> WriteResult:
    """Write one message at its position. The same again is a no-op, and so is a note where anything stands already.

    One that `yields` gives way to a message that the same step has left there: the run gave the step up, not knowing
    that its result had been committed and only the report was lost. The result stands, and is what the model reads.

    Raises:
        ConflictError: another message is at this position, or this one was written with other content.
    """
    params = queries.Writing(
        tenant=tenant,
        message_id=ids.message_id(run_id, path, position),
        run_id=run_id,
        path=path,
        position=position,
        agent=agent,
        role=role,
        content=content,
        call_id=call_id,
        tool=tool,
        at=at,
    ).json(requests=plain(list(requests)), parts=parts)
    if await queries.run(conn, _SQL["write"], params):
        return WRITTEN
    if role == NOTE or await queries.value(conn, _SQL["own" if yields else "same"], params):
        return NOOP
    raise ConflictError(
        f"Position {position} of run {run_id} holds another message than the {role} message of {path}. It stands; "
        "positions are given once."
    )


async def transcript(
    conn: Connection, tenant: str, run_id: UUID, up_to: int, agent: str, own: int | None = None
) -> list[Message]:
    """The messages of `agent` at positions 1 to `up_to`, in order, notes left out.

    No prompt is built with a hole. With `own` the positions of others may still be empty, since they are being asked,
    and so many must be the agent's own, notes included.

    Raises:
        ConflictError: a position up to there is empty, whosever it is; or with `own`, one of the agent's.
    """
    key = {"tenant": tenant, "run_id": run_id, "up_to": up_to, "agent": agent}
    if own is None:
        hole = await queries.value(conn, _SQL["first_hole"], key)
        if hole is not None:
            raise ConflictError(
                f"The transcript of run {run_id} has no message at position {hole}, and is read to {up_to}."
            )
    elif (found := await queries.value(conn, _SQL["own_messages"], key)) != own:
        raise ConflictError(
            f"The transcript of run {run_id} has {found} messages of agent {agent!r} up to position {up_to}, not {own}."
        )
    return [_message(row) for row in await queries.many(conn, _SQL["transcript"], key, _Read)]


def _message(row: _Read) -> Message:
    requests = tuple(Request(made["call_id"], made["name"], made["arguments"]) for made in row.requests)
    return Message(row.position, row.agent, row.role, row.content, requests, row.call_id, row.tool, row.parts)


async def tool_request(conn: Connection, tenant: str, run_id: UUID, position: int, index: int) -> Request:
    """The `index`th tool (from 0) that the assistant message at `position` asks for.

    Raises:
        ConflictError: there is no such message or request.
    """
    key = {"tenant": tenant, "run_id": run_id, "position": position, "index": index}
    made = await queries.value(conn, _SQL["tool_request"], key) if index >= 0 else None
    if made is None:
        raise ConflictError(f"Message {position} of run {run_id} asks for no tool number {index}.")
    return Request(made["call_id"], made["name"], made["arguments"])


async def arguments(conn: Connection, tenant: str, run_id: UUID, position: int, index: int) -> Plain:
    """The arguments of that request.

    Raises:
        ConflictError: there is no such message or request.
    """
    return (await tool_request(conn, tenant, run_id, position, index)).arguments


async def page(conn: Connection, tenant: str, run_id: UUID, after: int = 0, limit: int = 200) -> list[MessageRow]:
    """Messages after position `after`, notes included, for readers."""
    key = {"tenant": tenant, "run_id": run_id, "after": after, "limit": checked_limit(limit)}
    return await queries.many(conn, _SQL["page"], key, MessageRow)
