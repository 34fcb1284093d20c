"""The errors of Transactions: written once, one for each attempt that failed."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from casework.process import ErrorEntity, ErrorType, Severity
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.plain_rows import as_json, error_row

_SQL = queries.load("task_errors")


async def record(conn: Connection, tenant: str, error: ErrorEntity) -> bool:
    """Write an error; False where it is there already."""
    params = queries.Writing(tenant=tenant) | {"failure": as_json(error_row(error))}
    return bool(await queries.value(conn, _SQL["record"], params))


async def of(conn: Connection, tenant: str, transaction: UUID) -> list[ErrorEntity]:
    """The errors of a Transaction, in order of time."""
    rows = await queries.many(conn, _SQL["of"], {"tenant": tenant, "uuid": transaction}, ErrorEntity)
    return [replace(row, type=ErrorType(row.type), severity=Severity(row.severity)) for row in rows]
