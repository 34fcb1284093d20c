"""What the sweep reads of open runs: few columns of many rows, page by page, and nothing of their content."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.paging import Cursor, place
from casework.values import Plain

_SQL = queries.load("sweeping")
PAGE = 2_000


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A run that has not ended, as its row says. `updated_at` is the last word of the run itself."""

    tenant: str
    run_id: UUID
    status: str
    version: int
    created_at: datetime
    updated_at: datetime
    incident: Plain
    task_queue: str | None


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A run that has a row, and when it ended, if it has."""

    tenant: str
    run_id: UUID
    status: str
    failure: str | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Counted:
    """Open rows: those that the engine must have, those still to be started, and those with more to tell (an incident,
    or another task queue)."""

    open: int
    pending: int
    told: int


async def counted(conn: Connection, queue: str) -> Counted:
    """Open rows of all tenants; `queue` is the task queue whose runs need no further look."""
    found = await queries.one(conn, _SQL["counted"], {"queue": queue}, Counted)
    assert found is not None, "an aggregate has a row"
    return found


async def few(conn: Connection, before: datetime, limit: int) -> list[OpenRow]:
    """All rows that are PENDING, and some at random that have said nothing since `before`: `limit` of those that should
    be moving, twice as many of those that wait for a person."""
    return await queries.many(conn, _SQL["few"], {"before": before, "limit": limit}, OpenRow)


async def open_page(conn: Connection, after: OpenRow | None = None, limit: int = PAGE) -> list[OpenRow]:
    """The next open runs of all tenants, oldest first."""
    cursor = None if after is None else Cursor(after.created_at, after.run_id)
    return await queries.many(conn, _SQL["open_page"], {"limit": limit, **place(cursor)}, OpenRow, prepare=False)


async def known(conn: Connection, run_ids: Collection[UUID]) -> list[KnownRow]:
    """Those of `run_ids` that have a row, ended or not, in any tenant."""
    return await queries.many(conn, _SQL["known"], {"run_ids": list(run_ids)}, KnownRow)


async def busy(conn: Connection, run_ids: Collection[UUID], since: datetime) -> set[UUID]:
    """Those of `run_ids` that have a step in flight which has moved since an instant."""
    found = await queries.dicts(conn, _SQL["busy"], {"run_ids": list(run_ids), "since": since})
    return {row["run_id"] for row in found}
