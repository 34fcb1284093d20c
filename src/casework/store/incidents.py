"""Incidents: the flag of an open run that cannot go on until something outside it is mended, and the events that tell.

Raised and taken down by the sweep; the run's own next write takes it down as well, since the run moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.results import NOOP, WRITTEN, WriteResult
from casework.store.runlock import lock_run
from casework.values import Plain

_SQL = queries.load("incidents")

Kind = Literal["engine", "rows", "start"]
"""The engine cannot go on with it (workflow code that does not fit), its rows do not fit it, it cannot be started."""


@dataclass(frozen=True, slots=True)
class Before:
    """The flag as it was before a write to the run's row."""

    incident: Plain


async def raise_incident(
    conn: Connection, tenant: str, run_id: UUID, kind: Kind, reason: str, at: datetime | None = None
) -> WriteResult:
    """Raise the flag of an open run, with an event `incident_raised:<time>`. The same kind again is a no-op.

    Raises:
        ConflictError: there is no such run.
    """
    await lock_run(conn, tenant, run_id)
    moment = at or datetime.now(UTC)
    flag = {"kind": kind, "reason": reason, "at": moment}
    params = queries.Writing(tenant=tenant, run_id=run_id, kind=kind, at=moment).json(incident=flag)
    if not await queries.run(conn, _SQL["raise"], params):
        return NOOP
    return await add_locked(conn, tenant, run_id, "", f"incident_raised:{params['at'].isoformat()}", flag, moment)


async def clear_incident(conn: Connection, tenant: str, run_id: UUID, at: datetime | None = None) -> WriteResult:
    """Take the flag down, with an event `incident_cleared:<time it was raised>`.

    Raises:
        ConflictError: there is no such run.
    """
    await lock_run(conn, tenant, run_id)
    moment = at or datetime.now(UTC)
    params = {"tenant": tenant, "run_id": run_id, "at": moment}
    before = await queries.one(conn, _SQL["clear"], params, Before)
    if before is None:
        return NOOP
    await tell_cleared(conn, tenant, run_id, before, moment)
    return WRITTEN


async def tell_cleared(
    conn: Connection, tenant: str, run_id: UUID, before: Before, at: datetime | str | None = None
) -> None:
    """The event of a flag that a write has taken down, if there was one. The caller holds the run's row lock."""
    if before.incident is not None:
        kind = f"incident_cleared:{before.incident.get('at')}"
        await add_locked(conn, tenant, run_id, "", kind, {"reason": before.incident.get("reason")}, at)
