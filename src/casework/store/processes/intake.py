"""What comes from outside: a Transaction and its entity in one database transaction, trays of it, and what was refused.

It moves like this. Each Transaction is added unclaimed, together with what its Monitor saves. Once a tray is full, one
statement gives it its claim. A worker that dies between leaves rows that no task has seen: `left_over` and `unstarted`
find them, and the next poll goes on with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import psycopg

from casework.errors import CaseworkError, RetryableError, StoreUnavailableError
from casework.process import Transaction
from casework.process.failures import ErrorType, Severity
from casework.process.monitor_runners import Save
from casework.process.transactions import changed
from casework.store import queries
from casework.store.database import Connection
from casework.store.faults import translate
from casework.store.lent import lent
from casework.store.processes import transactions

_SQL = queries.load("intake")


class LostError(StoreUnavailableError):
    """The connection broke while somebody else's code had it, which may have been silent on it for too long."""


@dataclass(frozen=True, slots=True)
class InputErrorRow:
    """An entity that could not be taken in, or (without `natural_key`) a poll that failed; `times` counts repeats."""

    uuid: UUID
    process: str
    monitor_class: str
    natural_key: str | None
    type: ErrorType
    code: str
    severity: Severity
    short_text: str
    full_text: str
    times: int
    first_at: datetime
    last_at: datetime


async def take_in(
    conn: Connection, made: Transaction, save: Save, by: str, at: datetime, *, business_key: str | None = None
) -> Transaction | None:
    """Add a Transaction and let `save` write what it stands for, in the database transaction that is open on `conn`.

    None where its natural key was there already: nothing is written, and `save` is not called.

    Raises:
        LostError: the connection broke while `save` had it.
        StoreUnavailableError: the database cannot be reached.
        ConflictError, FatalError: a statement of `save` was refused, or cannot be run.
        Exception: whatever `save` raises. The caller rolls back.
    """
    process = made.process or ""
    if not await transactions.insert(conn, made, process, by, at, business_key=business_key):
        return None
    try:
        async with lent(conn) as connection:
            data = await save(made.uuid, connection)
    except psycopg.Error as error:
        raise _of_save(conn, error) from error
    except RetryableError as error:
        if isinstance(error.__cause__, psycopg.Error):
            raise _of_save(conn, error.__cause__) from error
        raise
    if not data:
        return made
    whole = changed(made, **data)
    await transactions.write(conn, made, whole, process, by, at)
    return whole


def _of_save(conn: Connection, error: psycopg.Error) -> CaseworkError:
    made = translate(error, theirs=True)
    return LostError(str(made)) if conn.closed and isinstance(made, StoreUnavailableError) else made


async def has_come(conn: Connection, tenant: str, natural_key: str) -> bool:
    """Whether there is a Transaction with this natural key."""
    return bool(await queries.value(conn, _SQL["has_come"], queries.Writing(tenant=tenant, natural_key=natural_key)))


async def claim_made(
    conn: Connection,
    tenant: str,
    *,
    process: str,
    status: str,
    uuids: Sequence[UUID],
    claim_id: UUID,
    by: str,
    at: datetime,
) -> list[Transaction]:
    """Give those of `uuids` that are in `status`, without a claim and seen by no task, the claim; they are returned."""
    params = queries.Writing(
        tenant=tenant, process=process, status=status, uuids=list(uuids), claim_id=claim_id, by=by, at=at
    )
    return await queries.many(conn, _SQL["claim_made"], params, Transaction)


async def left_over(conn: Connection, tenant: str, process: str, status: str, most: int) -> list[UUID]:
    """What was taken in for a process in `status` and never claimed, the oldest first."""
    params = {"tenant": tenant, "process": process, "status": status, "most": most}
    return [row["uuid"] for row in await queries.dicts(conn, _SQL["left_over"], params)]


async def unstarted(conn: Connection, tenant: str, process: str) -> list[Transaction]:
    """What bears a claim of a process and no task has seen, those of one claim together."""
    return await queries.many(conn, _SQL["unstarted"], {"tenant": tenant, "process": process}, Transaction)


async def refuse(conn: Connection, tenant: str, row: InputErrorRow) -> None:
    """Record an error; one with the same id counts once more."""
    params = queries.Writing(tenant=tenant, **{name: getattr(row, name) for name in InputErrorRow.__dataclass_fields__})
    await queries.run(conn, _SQL["refuse"], params)


async def refused(conn: Connection, tenant: str, process: str | None = None, most: int = 100) -> list[InputErrorRow]:
    """The newest errors, of one process or of all."""
    rows = await queries.many(
        conn, _SQL["refused"], {"tenant": tenant, "process": process, "most": most}, InputErrorRow, prepare=False
    )
    return [replace(row, type=ErrorType(row.type), severity=Severity(row.severity)) for row in rows]
