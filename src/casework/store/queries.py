"""Named queries: `sql/NAME.sql` holds the queries of module NAME, each below a line `-- name: QUERY`.

`Writing` builds the parameters of a write: everything passes `values.clean`, and what that replaced is counted into
the parameter `cleaned`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from casework.values import Plain, clean, dumps, instant, plain

Row = TypeVar("Row")
Params = Mapping[str, Any]
_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Query:
    """One statement; `name` is `module.query`, for error messages."""

    name: str
    sql: bytes


@cache
def load(module: str) -> Mapping[str, Query]:
    """The queries of `module` by name."""
    text = (resources.files("casework.store") / "sql" / f"{module}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: Query(f"{module}.{name}", sql.strip().rstrip(";").encode()) for name, sql in pairs}


class Writing(dict[str, Any]):
    """Parameters of a write: texts cleaned, JSON values (through `json`) plain and cleaned, replacements counted."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(cleaned=0)
        for name, value in fields.items():
            self[name] = self._held(name, value)

    def json(self, **fields: Plain) -> Writing:
        """Add JSON columns. None becomes SQL NULL."""
        for name, value in fields.items():
            made = clean(plain(value, name))
            self["cleaned"] += made.replaced
            self[name] = None if made.value is None else Jsonb(made.value, dumps=dumps)
        return self

    def _held(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            made = clean(value)
            self["cleaned"] += made.replaced
            return made.value
        if isinstance(value, datetime):
            instant(value, name)
        return value


async def run(conn: AsyncConnection[Any], query: Query, params: Params) -> int:
    """Execute; the number of rows touched."""
    try:
        return (await conn.execute(query.sql, params)).rowcount
    except psycopg.Error as error:
        error.add_note(query.name)
        raise


async def one(conn: AsyncConnection[Any], query: Query, params: Params, row: type[Row]) -> Row | None:
    """The first row, typed, or None."""
    found = await many(conn, query, params, row)
    return found[0] if found else None


async def many(
    conn: AsyncConnection[Any], query: Query, params: Params, row: type[Row], *, prepare: bool | None = None
) -> list[Row]:
    """All rows, typed: the columns are the fields of the dataclass `row`.

    `prepare` False plans for these very parameters each time: where filters that are absent must vanish from the plan.
    """
    try:
        async with conn.cursor(row_factory=class_row(row)) as cursor:
            await cursor.execute(query.sql, params, prepare=prepare)
            return await cursor.fetchall()
    except psycopg.Error as error:
        error.add_note(query.name)
        raise


async def dicts(conn: AsyncConnection[Any], query: Query, params: Params) -> list[dict[str, Any]]:
    """All rows as dicts."""
    try:
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.sql, params)
            return await cursor.fetchall()
    except psycopg.Error as error:
        error.add_note(query.name)
        raise


async def value(conn: AsyncConnection[Any], query: Query, params: Params) -> Any:
    """The first column of the first row, or None."""
    try:
        found = await (await conn.execute(query.sql, params)).fetchone()
    except psycopg.Error as error:
        error.add_note(query.name)
        raise
    return found[0] if found else None
