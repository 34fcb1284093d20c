"""One writer per kind of entry (reviews have a module of their own). The caller holds the run's row lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework import ids
from casework.errors import ConflictError
from casework.projection import ContextEntry, LogEntry, RunEntry, StepEntry
from casework.store import queries
from casework.store.attempts import EVERY, lose_attempts
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.incidents import Before, tell_cleared
from casework.store.results import NOOP, STALE, WRITTEN, WriteResult
from casework.values import content_hash

_SQL = queries.load("writers")


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the read-back finds: `newer` than the entry, the `same`, or `terminal`."""

    version: int
    newer: bool
    same: bool
    terminal: bool


@dataclass(frozen=True, slots=True)
class _Path:
    path: str


async def write_run(
    conn: Connection, tenant: str, run_id: UUID, entry: RunEntry, *, superseded: bool = False
) -> WriteResult:
    """The run's row as a whole, over a lower version that is not terminal; clears an incident, since the run moves."""
    params = queries.Writing(
        tenant=tenant,
        run_id=run_id,
        version=entry.version,
        status=entry.status,
        turn=entry.turn,
        current_node=entry.current_node,
        loop_count=entry.loop_count,
        outcome=entry.outcome,
        failure=entry.failure or ("no reason was given" if entry.status == "FAILED" else None),
        at=entry.at,
    ).json(recommendation=entry.recommendation)
    before = await queries.one(conn, _SQL["run"], params, Before)
    if before is not None:
        await tell_cleared(conn, tenant, run_id, before, entry.at)
        return WRITTEN
    stored = await queries.one(conn, _SQL["run_stored"], params, _Stored)
    if stored is not None and stored.newer and not stored.terminal and not superseded:
        data = {"version": entry.version, "status": entry.status, "stored": stored.version}
        await add_locked(conn, tenant, run_id, "", f"run_stale:{entry.version}", data, entry.at)
        return STALE
    return _expected(stored, f"run {run_id} at version {entry.version}")


def _expected(stored: _Stored | None, what: str) -> WriteResult:
    if stored is not None and (stored.same or stored.terminal or stored.newer):
        return NOOP
    raise ConflictError(f"The row of {what} holds something else under the same key. It stands; nothing is written.")


async def write_context(conn: Connection, tenant: str, run_id: UUID, entry: ContextEntry) -> WriteResult:
    """One output of a node; a higher version at the same path and key takes its place."""
    params = queries.Writing(
        tenant=tenant,
        context_id=ids.derived_id(run_id, entry.path, f"context:{entry.key}"),
        run_id=run_id,
        path=entry.path,
        key=entry.key,
        version=entry.version,
        at=entry.at,
    ).json(value=entry.value)
    if await queries.run(conn, _SQL["context"], params):
        return WRITTEN
    stored = await queries.one(conn, _SQL["context_stored"], params, _Stored)
    if stored is not None and stored.newer:
        data = {"key": entry.key, "version": entry.version, "stored": stored.version}
        await add_locked(conn, tenant, run_id, entry.path, f"context_stale:{entry.key}:{entry.version}", data, entry.at)
        return STALE
    return _expected(stored, f"context {entry.key!r} of {entry.path} of run {run_id}")


async def write_step(conn: Connection, tenant: str, run_id: UUID, entry: StepEntry) -> WriteResult:
    """A ledger row that the run writes itself, or the close of one that is STARTED: its open attempt is LOST."""
    params = queries.Writing(
        tenant=tenant,
        step_id=ids.step_id(run_id, entry.path),
        run_id=run_id,
        path=entry.path,
        kind=entry.kind,
        name=entry.name,
        state=entry.state,
        error=entry.error,
        at=entry.at,
    ).json(result=entry.result)
    if not await queries.run(conn, _SQL["step"], params):
        return NOOP
    await lose_attempts(conn, tenant, run_id, entry.path, EVERY, entry.error or "the run closed the step")
    return WRITTEN


async def write_log(conn: Connection, tenant: str, run_id: UUID, entry: LogEntry) -> WriteResult:
    """A line for the reader; the same line of the same moment is one row."""
    single = content_hash([entry.node, entry.level, entry.message, entry.at])
    params = queries.Writing(
        tenant=tenant,
        log_id=ids.derived_id(run_id, entry.path, f"log:{single}"),
        run_id=run_id,
        path=entry.path,
        node=entry.node,
        level=entry.level,
        message=entry.message,
        at=entry.at,
    )
    return WRITTEN if await queries.run(conn, _SQL["log"], params) else NOOP


async def close_open(conn: Connection, tenant: str, run_id: UUID, why: str, at: datetime | str | None) -> None:
    """Close what an ended run left open: pending reviews, and steps in flight with their attempts. Idempotent."""
    params = queries.Writing(tenant=tenant, run_id=run_id, why=why, at=at)
    await queries.run(conn, _SQL["close_reviews"], params)
    for step in await queries.many(conn, _SQL["close_steps"], params, _Path):
        await lose_attempts(conn, tenant, run_id, step.path, EVERY, why)
