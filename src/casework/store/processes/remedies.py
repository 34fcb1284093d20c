"""What becomes of a failed Transaction, written: it ends, and a clone takes over what belonged to it.

All of it is in the caller's database transaction: the clone is added, the rows of the project's entities are pointed to
it, the failed one is ABORTED. The link back is the column `cloned_from` of the clone. Children stay with the one that
was split; the clone of a child counts in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import sql

from casework.errors import ConflictError, NotFoundError, ProcessDeclarationError
from casework.process import ErrorPolicy, Remedy, StatusSet, Transaction
from casework.process.lines import Line
from casework.process.remedies import Remedied, remedied
from casework.process.transactions import touched
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes import transactions

_SQL = queries.load("remedies")


async def by_hand(
    conn: Connection,
    tenant: str,
    uuid: UUID,
    remedy: Remedy,
    *,
    statuses: StatusSet,
    policy: ErrorPolicy,
    lines: Iterable[Line],
    entities: Iterable[str],
    by: str,
    at: datetime,
) -> Remedied:
    """A person's answer about a failed Transaction that no review asked for: it counts, wherever the Transaction is.

    A tray of the Error process that is at work on it finds it gone and lets go of it.

    Raises:
        NotFoundError: there is no such Transaction.
        StateError: it has no error, or the policy has not this answer.
        InputError: the status to clone into, or the task to resume at, is none that there is.
        ProcessDeclarationError: as `hand_over`.
    """
    before = await transactions.lock(conn, tenant, uuid)
    if before is None:
        raise NotFoundError(f"There is no Transaction {uuid} of tenant {tenant!r}.")
    made = remedied(touched(before), remedy, statuses=statuses, policy=policy, lines=lines, at=at)
    process = before.process or ""
    if made.clone is not None:
        await hand_over(conn, before, made.clone, entities, process, by, at)
    await transactions.write(conn, before, made.transaction, process, by, at, by_hand=made.by_hand)
    return made


async def hand_over(
    conn: Connection,
    failed: Transaction,
    clone: Transaction,
    entities: Iterable[str],
    process: str,
    by: str,
    at: datetime,
) -> None:
    """Add the clone, and point to it the rows of `entities` that belong to the failed one, which is locked and open.

    Entities are tables as `schema.table`, guarded by `process_ops.guard_entities`, which names their column.

    Raises:
        ConflictError: it has been cloned before.
        ProcessDeclarationError: a table is not there, or is not guarded.
    """
    key = await queries.value(conn, _SQL["business_key"], {"tenant": failed.tenant, "uuid": failed.uuid})
    if not await transactions.insert(conn, clone, process, by, at, cloned_from=failed.uuid, business_key=key):
        raise ConflictError(f"Transaction {failed.uuid} has the clone {clone.uuid} already. Look at that one.")
    for table in entities:
        await _point(conn, table, failed, clone)


async def clone_of(conn: Connection, tenant: str, uuid: UUID) -> UUID | None:
    """The Transaction that took the place of a failed one, if one did."""
    found = await queries.value(conn, _SQL["clone_of"], {"tenant": tenant, "uuid": uuid})
    return None if found is None else UUID(str(found))


@dataclass(frozen=True, slots=True)
class EntityTable:
    """A table of a project's entities; `column` names the Transaction of a row."""

    schema: str
    name: str
    column: str
    has_tenant: bool

    def of_tenant(self) -> sql.Composable:
        """The condition that a row is of the tenant `%(tenant)s`; nothing where the table knows no tenants."""
        return sql.SQL(" and e.tenant = %(tenant)s") if self.has_tenant else sql.SQL("")


async def entity_table(conn: Connection, table: str) -> EntityTable:
    """A table of entities by its name, `schema.table`.

    Raises:
        ProcessDeclarationError: it is not there, or is not guarded.
    """
    found = await queries.one(conn, _SQL["guarded"], {"table": table}, EntityTable)
    if found is None:
        raise ProcessDeclarationError(
            f"Table {table!r} is not there, or is not guarded. Call process_ops.guard_entities('{table}') in a "
            "migration of yours.",
            field="entities",
        )
    return found


async def _point(conn: Connection, name: str, failed: Transaction, clone: Transaction) -> None:
    table = await entity_table(conn, name)
    column = sql.Identifier(table.column)
    statement = sql.SQL("update {} e set {} = %(to)s where e.{} = %(uuid)s").format(
        sql.Identifier(table.schema, table.name), column, column
    )
    params = {"to": clone.uuid, "uuid": failed.uuid, "tenant": failed.tenant}
    await conn.execute(statement + table.of_tenant(), params)
