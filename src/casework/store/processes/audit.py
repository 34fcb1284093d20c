"""Whether the books of business processes balance: Transactions against all that is written of them besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from psycopg import sql
from psycopg.rows import class_row

from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.audit_checks import CHECKS, LEFT_BEHIND, Check
from casework.store.processes.remedies import entity_table
from casework.values import Plain

_SQL = queries.load("process_audit")
MOST = 100
"""So many faults of each check are told of, unless another number is asked for."""


@dataclass(frozen=True, slots=True)
class BookFault:
    """What does not agree: `id` is that of what the check is `of`."""

    check: Check
    id: UUID
    found: str


@dataclass(frozen=True, slots=True)
class BookCounts:
    """How many rows there are; `failed` are HAS_ERROR or ERROR_IN_PROGRESS."""

    transactions: int
    open: int
    in_trays: int
    completed: int
    failed: int
    steps: int


@dataclass(frozen=True, slots=True)
class Books:
    """The books of one tenant. `totals` says of each check how many faults there are; `faults` may be fewer."""

    tenant: str
    counts: BookCounts
    faults: list[BookFault]
    totals: dict[str, int]

    @property
    def balance(self) -> bool:
        """Whether no check has found a fault."""
        return not any(self.totals.values())

    def to_plain(self) -> dict[str, Plain]:
        """For one JSON object."""
        faults: list[Plain] = [
            {
                "fault": each.check.fault,
                "of": each.check.of,
                "id": str(each.id),
                "found": each.found,
                "remedy": each.check.remedy,
            }
            for each in self.faults
        ]
        untold = sum(self.totals.values()) - len(self.faults)
        return {
            "tenant": self.tenant,
            "balanced": self.balance,
            "counts": asdict(self.counts),
            "checks": dict(self.totals),
            "faults": faults,
            "untold": untold,
        }


@dataclass(frozen=True, slots=True)
class _Found:
    id: UUID
    found: str
    total: int


async def books(conn: Connection, tenant: str, most: int = MOST, entities: Sequence[str] = ()) -> Books:
    """The counts, and of each check up to `most` faults, all as they are at one instant, however long it takes.

    It has to be the first thing in its database transaction, which writes nothing then. `entities` are tables
    (`schema.table`) whose rows go to the clone of a failed Transaction.

    Raises:
        ProcessDeclarationError: a table of `entities` is not there, or is not guarded.
    """
    await queries.run(conn, _SQL["snapshot"], {})
    return await checked(conn, tenant, most, entities)


async def checked(conn: Connection, tenant: str, most: int = MOST, entities: Sequence[str] = ()) -> Books:
    """The same in a database transaction as it stands, with what it has written itself."""
    params = {"tenant": tenant, "most": most}
    counts = await queries.one(conn, _SQL["counted"], params, BookCounts)
    assert counts is not None, "a count without group by is one row"
    made = Books(tenant, counts, [], {})
    for check in CHECKS:
        _take(made, check, await queries.many(conn, _SQL[check.query], params, _Found, prepare=False))
    for name in entities:
        _take(made, LEFT_BEHIND, await _left_behind(conn, name, params))
    return made


def _take(made: Books, check: Check, found: Sequence[_Found]) -> None:
    total = found[0].total if found else 0
    made.totals[check.fault] = made.totals.get(check.fault, 0) + total
    made.faults.extend(BookFault(check, each.id, each.found) for each in found)


async def _left_behind(conn: Connection, name: str, params: queries.Params) -> list[_Found]:
    table = await entity_table(conn, name)
    column = sql.Identifier(table.column)
    statement = sql.SQL(
        "select e.{} as id, format('%%s rows of %%s', count(*), %(table)s::text) as found, count(*) over () as total "
        "from {} e join process_ops.transactions c on c.tenant = %(tenant)s and c.cloned_from = e.{} where true{} "
        "group by 1 order by 1 limit %(most)s"
    ).format(column, sql.Identifier(table.schema, table.name), column, table.of_tenant())
    async with conn.cursor(row_factory=class_row(_Found)) as cursor:
        await cursor.execute(statement, {**params, "table": name})
        return await cursor.fetchall()
