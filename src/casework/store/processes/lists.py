"""What people look at: Transactions in pages and one by one, how many there are, errors, and the figures at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from casework.process import ErrorEntity, ErrorType, Severity
from casework.store import queries
from casework.store.database import Connection
from casework.store.paging import Cursor, Page, checked_limit, place
from casework.values import Plain

_SQL = queries.load("process_lists")


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A Transaction with what its row has besides: its root, the failed one that it was cloned from, its business key,
    and whether a person completed it."""

    tenant: str
    uuid: UUID
    parent_uuid: UUID | None
    root_uuid: UUID
    cloned_from: UUID | None
    status: str
    status_before_error: str | None
    claim_id: UUID | None
    process: str | None
    task: str | None
    natural_key: str | None
    business_key: str | None
    priority: int
    due_time: datetime | None
    start_time: datetime
    end_time: datetime | None
    data: Plain
    skip_until: str | None
    straight_through: bool
    by_hand: bool
    cleaned: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which Transactions of a tenant. What is None does not matter; `text` is a part of the natural key."""

    tenant: str
    status: str | None = None
    process: str | None = None
    claim_id: UUID | None = None
    parent: UUID | None = None
    clone_of: UUID | None = None
    text: str | None = None
    natural_key: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many Transactions are in a status, at a process, and how many of them are in trays.

    `oldest` is when the first of them began.
    """

    process: str | None
    status: str
    transactions: int
    claimed: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class AnalyticsRow:
    """The figures of a Transaction that was COMPLETED: seconds in all and by status, errors, cost of its runs."""

    transaction_uuid: UUID
    root_uuid: UUID
    process: str | None
    start_time: datetime
    end_time: datetime
    seconds: Decimal
    stage_times: Plain
    straight_through: bool
    by_hand: bool
    errors: int
    cost: Decimal


async def page(conn: Connection, wanted: Wanted, after: Cursor | None = None, limit: int = 50) -> Page[TransactionRow]:
    """Transactions, newest first.

    Raises:
        InputError: the limit is out of range.
    """
    params = queries.Writing(
        tenant=wanted.tenant,
        status=wanted.status,
        process=wanted.process,
        claim_id=wanted.claim_id,
        parent=wanted.parent,
        clone_of=wanted.clone_of,
        text=wanted.text,
        natural_key=wanted.natural_key,
        limit=checked_limit(limit) + 1,
    )
    query = _SQL["transactions"]
    rows = await queries.many(conn, query, {**params, **place(after)}, TransactionRow, prepare=False)
    more = Cursor(rows[limit - 1].start_time, rows[limit - 1].uuid) if len(rows) > limit else None
    return Page(rows[:limit], more)


async def detail(conn: Connection, tenant: str, uuid: UUID) -> TransactionRow | None:
    """A Transaction by its id."""
    return await queries.one(conn, _SQL["transaction"], {"tenant": tenant, "uuid": uuid}, TransactionRow)


async def of_natural_key(conn: Connection, tenant: str, natural_key: str) -> UUID | None:
    """The id of the Transaction with that natural key."""
    params = queries.Writing(tenant=tenant, natural_key=natural_key)
    found = await queries.value(conn, _SQL["of_natural_key"], params)
    return None if found is None else UUID(str(found))


async def counts(conn: Connection, tenant: str, since: datetime) -> list[Count]:
    """By process and status, how many Transactions are open, or ended `since` then."""
    return await queries.many(conn, _SQL["counts"], {"tenant": tenant, "since": since}, Count)


async def errors(
    conn: Connection,
    tenant: str,
    process: str | None = None,
    root: UUID | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[ErrorEntity]:
    """Errors, newest first, of a process, of all that was split from one Transaction.

    Raises:
        InputError: the limit is out of range.
    """
    params = queries.Writing(tenant=tenant, process=process, root=root, limit=checked_limit(limit) + 1)
    found = await queries.many(conn, _SQL["errors"], {**params, **place(after)}, ErrorEntity, prepare=False)
    rows = [replace(row, type=ErrorType(row.type), severity=Severity(row.severity)) for row in found]
    more = Cursor(rows[limit - 1].failed, rows[limit - 1].uuid) if len(rows) > limit else None
    return Page(rows[:limit], more)


async def analytics(conn: Connection, tenant: str, uuid: UUID) -> AnalyticsRow | None:
    """The figures of a Transaction; None for one that was not COMPLETED."""
    return await queries.one(conn, _SQL["analytics"], {"tenant": tenant, "uuid": uuid}, AnalyticsRow)
