"""A project's own tables of entities: whether what belongs to a terminal Transaction is guarded there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casework.errors import ProcessDeclarationError
from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("entities")


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    found: bool
    guarded: bool
    whole_rows: bool


async def check_guarded(conn: Connection, tables: Sequence[str]) -> None:
    """Refuse tables (`schema.table`) of entities that lack the guard or whole rows in the write-ahead log.

    Raises:
        ProcessDeclarationError: names each with what it lacks, and what to put into a migration.
    """
    if not tables:
        return
    found = await queries.many(conn, _SQL["guards"], {"tables": list(tables)}, _Table)
    faults = [_fault(table) for table in found if not (table.found and table.guarded and table.whole_rows)]
    if faults:
        raise ProcessDeclarationError(f"Tables of entities cannot be used: {' '.join(faults)}", field="entities")


def _fault(table: _Table) -> str:
    if not table.found:
        return (
            f"There is no table {table.name!r}. Name it as schema.table, and make it by --tables of `casework migrate` "
            "or `casework dev`."
        )
    lacks = [
        what
        for what, there in (
            ("the guard of terminal Transactions", table.guarded),
            ("REPLICA IDENTITY FULL", table.whole_rows),
        )
        if not there
    ]
    return (
        f"{table.name!r} lacks {' and '.join(lacks)}. "
        f"Run select process_ops.guard_entities('{table.name}', 'COLUMN') in a file of --tables, with the column that "
        "names the Transaction."
    )
