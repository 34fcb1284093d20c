"""Outbox entries become rows: in order, under the run's row lock, each over a row that may still change.

Every entry can come twice. What touches zero rows is read back: equal or terminal is a no-op, an older version is
stale and recorded as an event, anything else is a ConflictError. That rolls back the transaction; the caller then
writes the event that tells of it with `record_conflict`, in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from casework.errors import ConflictError, FatalError
from casework.projection import entries as kinds
from casework.projection import from_plain
from casework.store import messages, queries
from casework.store.database import Connection, Database
from casework.store.events import add_event, add_locked
from casework.store.results import NOOP, WriteResult
from casework.store.reviews import write_decision, write_review
from casework.store.runlock import TERMINAL, lock_run
from casework.store.writers import close_open, write_context, write_log, write_run, write_step
from casework.values import content_hash

__all__ = ["add_event", "apply", "record_conflict"]


async def apply(conn: Connection, tenant: str, run_id: UUID, entries: Sequence[Mapping[str, Any]]) -> list[WriteResult]:
    """Apply plain entries (`projection.to_plain`) in order; one result for each.

    When one of them ends the run, what is open of it is closed at the end: pending reviews `closed`, steps in flight
    FAILED, their attempts LOST.

    Raises:
        ConflictError: an entry met a row that is neither older, equal nor terminal, or there is no such run.
        FatalError: an entry is of no known kind or lacks a field.
    """
    if not entries:
        return []
    made = [_entry(plain) for plain in entries]
    await lock_run(conn, tenant, run_id)
    newest = max((entry.version for entry in made if isinstance(entry, kinds.RunEntry)), default=0)
    results = [await _write(conn, tenant, run_id, entry, newest) for entry in made]
    ended = [entry for entry in made if isinstance(entry, kinds.RunEntry) and entry.status in TERMINAL]
    if ended:
        await close_open(conn, tenant, run_id, f"the run ended {ended[-1].status}", ended[-1].at)
    return results


def _entry(plain: Mapping[str, Any]) -> kinds.Entry:
    try:
        return from_plain(plain)
    except (KeyError, TypeError) as error:
        raise FatalError(
            f"The outbox holds an entry that this release cannot read ({plain.get('entry')!r}: {error}). "
            "Let workers of the newer release take this run."
        ) from error


async def _write(conn: Connection, tenant: str, run_id: UUID, entry: kinds.Entry, newest: int) -> WriteResult:
    """One entry. A run entry below `newest` travels with its successor, so that being late says nothing."""
    if isinstance(entry, kinds.RunEntry):
        return await write_run(conn, tenant, run_id, entry, superseded=entry.version < newest)
    write: Any = _WRITERS[type(entry)]
    result: WriteResult = await write(conn, tenant, run_id, entry)
    return result


async def _event(conn: Connection, tenant: str, run_id: UUID, entry: kinds.EventEntry) -> WriteResult:
    return await add_locked(conn, tenant, run_id, entry.path, entry.kind, entry.data, entry.at)


async def _message(conn: Connection, tenant: str, run_id: UUID, entry: kinds.MessageEntry) -> WriteResult:
    return await messages.write(
        conn,
        tenant,
        run_id,
        path=entry.path,
        position=entry.position,
        agent=entry.agent,
        role=entry.role,
        content=entry.content,
        call_id=entry.call_id,
        tool=entry.tool,
        at=entry.at,
        yields=entry.role == "tool",  # the run writes a tool's message only for a call that it refused or gave up
    )


_WRITERS: dict[type[kinds.Entry], Any] = {
    kinds.EventEntry: _event,
    kinds.MessageEntry: _message,
    kinds.ContextEntry: write_context,
    kinds.ReviewEntry: write_review,
    kinds.DecisionEntry: write_decision,
    kinds.StepEntry: write_step,
    kinds.LogEntry: write_log,
}


async def record_conflict(db: Database, tenant: str, run_id: UUID, path: str, error: ConflictError) -> WriteResult:
    """The event that tells of a conflict, in its own database transaction; a run without a row has no events.

    The same conflict at the same path is told once.
    """
    kind = f"conflict:{content_hash(str(error))[:16]}"
    async with db.transaction() as conn:
        if await queries.value(conn, queries.load("runs")["get"], {"tenant": tenant, "run_id": run_id}) is None:
            return NOOP
        return await add_event(conn, tenant, run_id, path, kind, {"error": str(error)})
