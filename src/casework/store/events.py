"""Events: numbered milestones of a run, each written once, each announced on the channel `casework_events`."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from casework import ids
from casework.store import queries
from casework.store.database import Connection
from casework.store.results import NOOP, WRITTEN, WriteResult
from casework.store.runlock import lock_run
from casework.values import Plain

CHANNEL = "casework_events"
"""A notification carries the run's id; the listener reads on from the last `seq` it has."""
_SQL = queries.load("events")


async def add_event(
    conn: Connection, tenant: str, run_id: UUID, path: str, kind: str, data: Plain, at: datetime | str | None = None
) -> WriteResult:
    """Write an event with the next `seq` of its run; the same path and kind again is a no-op and takes no number.

    Raises:
        ConflictError: there is no such run.
    """
    await lock_run(conn, tenant, run_id)
    return await add_locked(conn, tenant, run_id, path, kind, data, at)


async def add_locked(
    conn: Connection, tenant: str, run_id: UUID, path: str, kind: str, data: Plain, at: datetime | str | None = None
) -> WriteResult:
    """The same for a caller that holds the run's row lock."""
    event = ids.event_id(run_id, path, kind)
    params = queries.Writing(tenant=tenant, event_id=event, run_id=run_id, path=path, kind=kind, at=at).json(data=data)
    return WRITTEN if await queries.run(conn, _SQL["add"], params) else NOOP
