"""A query read in pages: first what is new behind the greatest key so far, then, as there is room, all before it again.

Rows may appear before others that were read: transactions commit in another order than their numbers are drawn. The
second look finds them, and what failed before. The greatest key is that of a row that was dealt with: a line without
room leaves rows, and they are read again. Where it stands is in memory alone; after a start the rows that were taken
are known by their keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from casework.errors import SettingsError, UnreachableError
from casework.settings.secret import Secret
from casework.sources.aside import SetAside
from casework.sources.sql.rows import SqlRow, check, prepare, row_of
from casework.sources.sql.settings import SqlSettings

GRACE_S = 5.0
"""How much longer than the server's own bound an answer may take, before the connection is given up."""
_BEFORE = (
    "select set_config('statement_timeout', %(ms)s, true), set_config('timezone', 'UTC', true),"
    " set_config('datestyle', 'ISO', true)"
)
_TELLING = 3
"""A shorter password is in every other word."""


class SqlSource:
    """Lives as long as the worker; each poll has a connection and a read-only transaction of its own."""

    def __init__(self, settings: SqlSettings) -> None:
        self.settings = settings
        self._greatest: Any = None
        self._again: Any = None
        self._fresh: dict[str, Any] = {}
        """The keys of the last poll's new rows, as the database gave them, by their texts."""
        self._aside = SetAside()

    async def rows(self) -> list[SqlRow]:
        """The rows of one poll; those that were given before may be among them.

        Raises:
            UnreachableError: the database is away, or the query takes too long.
            SettingsError: the query, its key, or the right to read does not hold.
        """
        key, most, before = self.settings.key, self.settings.rows_per_poll, self._greatest
        again: list[dict[str, Any]] = []
        async with self._connection() as connection:
            fresh = await self._page(connection, after=before)
            room = most - len(fresh)
            if room and before is not None:
                again = await self._page(connection, after=self._again, most=room, upto=before)
                self._again = again[-1][key] if len(again) == room else None
        if len(fresh) == most and fresh[-1][key] is None:
            raise SettingsError(
                f"key is {key!r}, which is null in {most} rows. Name a column that never is.", field="key"
            )
        made = [row_of(each, key) for each in fresh]
        self._fresh = {row.key: each[key] for row, each in zip(made, fresh, strict=True)}
        made += [row_of(each, key) for each in again]
        return [each for each in made if not self._aside.waits(each.key)]

    def taken(self, row: SqlRow) -> None:
        """It went well."""
        self._aside.forget(row.key)
        self._passed(row)

    def refused(self, row: SqlRow) -> None:
        """Leave it alone for a while."""
        self._aside.put(row.key)
        self._passed(row)

    def _passed(self, row: SqlRow) -> None:
        """Rows are dealt with in the order in which they are given."""
        if (key := self._fresh.pop(row.key, None)) is not None:
            self._greatest = key

    async def _page(
        self, connection: AsyncConnection[Any], *, after: Any, most: int | None = None, upto: Any = None
    ) -> list[dict[str, Any]]:
        settings = self.settings
        key = sql.Identifier(settings.key)
        bounds = [sql.SQL("{} > %(after)s").format(key)] if after is not None else []
        bounds += [sql.SQL("{} <= %(upto)s").format(key)] if upto is not None else []
        where = sql.SQL("where {}").format(sql.SQL(" and ").join(bounds)) if bounds else sql.SQL("")
        inner = settings.query.strip().rstrip(";").replace("%", "%%").encode()
        # A comment at its end must not take the bracket with it.
        statement = sql.SQL("select * from (\n{}\n) as source {} order by {} nulls first limit %(most)s").format(
            sql.SQL(inner.decode()),
            where,
            key,
        )
        values = {"after": after, "upto": upto, "most": most or settings.rows_per_poll}
        try:
            async with connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(statement, values)
                check(cursor.description or [], settings.key)
                return await cursor.fetchall()
        except psycopg.Error as error:
            raise self._refused(error) from None

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        settings = self.settings
        dsn = settings.dsn.read("dsn")
        parts = self._parts(dsn)
        patience = settings.connect_timeout_s + settings.statement_timeout_s + GRACE_S
        try:
            async with asyncio.timeout(patience):  # a server that hangs bounds nothing
                connection = await AsyncConnection.connect(
                    dsn.reveal(), connect_timeout=max(2, int(settings.connect_timeout_s)), application_name="casework"
                )
                try:
                    prepare(connection)
                    await connection.set_read_only(True)
                    await connection.execute(_BEFORE, {"ms": str(int(settings.statement_timeout_s * 1000))})
                    yield connection
                finally:
                    await connection.close()
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise UnreachableError(
                f"the database at {_place(parts)} cannot be used ({_words(error, parts)}). Check that it is up, and "
                f"host, user and password in {settings.dsn}."
            ) from None

    def _parts(self, dsn: Secret) -> dict[str, Any]:
        try:
            parts = dict(conninfo_to_dict(dsn.reveal()))
        except (psycopg.Error, UnicodeError):
            parts = {"host": "@"}
        # An '@' of a password that is not percent-encoded moves the borders: pieces of it would be taken for a host.
        if any("@" in str(parts.get(name) or "") for name in ("host", "hostaddr", "dbname", "port")):
            raise SettingsError(
                f"dsn: what is in {self.settings.dsn} is no URL of a database. Write it as "
                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with special characters percent-encoded.",
                field="dsn",
            )
        return parts

    def _refused(self, error: psycopg.Error) -> SettingsError | UnreachableError:
        state, settings = error.sqlstate or "", self.settings
        said = " ".join((error.diag.message_primary or str(error)).split())[:200]
        if state == "57014":
            return UnreachableError(
                f"query took longer than statement_timeout_s, {settings.statement_timeout_s:g} s. Add an index on "
                f"{settings.key!r}, read less, or allow more."
            )
        if state == "25006":
            return SettingsError(f"query would write ({said}). A source is only read; give a SELECT.", field="query")
        if state == "42703" and f'"{settings.key}"' in said:
            return SettingsError(f"key is {settings.key!r}: {said}. Name a column that the query gives.", field="key")
        if state[:2] in ("42", "22", "0A"):
            return SettingsError(f"query: {said} ({state}). Mend the query, or grant the right to read.", field="query")
        return UnreachableError(f"query could not be read ({state or 'connection lost'}: {said}). It is read again.")


def _place(parts: dict[str, Any]) -> str:
    return f"{parts.get('host', 'local socket')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def _words(error: BaseException, parts: dict[str, Any]) -> str:
    text = " ".join(str(error).split())[:300] or "it does not answer"
    secret = str(parts.get("password") or "")
    return text.replace(secret, "***") if len(secret) >= _TELLING else text
