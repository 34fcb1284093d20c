"""Intended waits for a time, a signal, or a run below, as the events of WAIT and SUBWORKFLOW nodes tell them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("waits")


@dataclass(frozen=True, slots=True)
class WaitRow:
    """A wait that is not over: for `signal`, until the instant `until`, or for whichever comes first."""

    run_id: UUID
    path: str
    signal: str | None
    until: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class SubRunRow:
    """A run of `workflow` that the SUBWORKFLOW at `path` waits for."""

    path: str
    run_id: str
    workflow: str
    at: datetime


@dataclass(frozen=True, slots=True)
class WaitTotal:
    """How many open runs wait so, and since when the first."""

    runs: int
    oldest: datetime | None


async def of_run(conn: Connection, tenant: str, run_id: UUID) -> list[WaitRow]:
    """The open waits of a run, oldest first."""
    return await queries.many(conn, _SQL["of_run"], {"tenant": tenant, "run_id": run_id}, WaitRow)


async def subs(conn: Connection, tenant: str, run_id: UUID) -> list[SubRunRow]:
    """The sub-runs that a run waits for, oldest first."""
    return await queries.many(conn, _SQL["subs"], {"tenant": tenant, "run_id": run_id}, SubRunRow)


async def total(conn: Connection) -> WaitTotal:
    """All open waits of open runs, of all tenants."""
    found = await queries.one(conn, _SQL["total"], {}, WaitTotal)
    assert found is not None
    return found
