"""The connection pool: short database transactions in one role, and healing after the server was away.

A connection takes its role (`SET ROLE`), its time-outs and UTC when it is made. It is checked when it is handed out;
one that fails the check drains the pool, because after a restart of the server the others are as dead.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from casework import values
from casework.errors import StoreUnavailableError
from casework.store.faults import is_connection_trouble, translate

Connection = AsyncConnection[Any]
_DRAIN_PAUSE_S = 1.0
"""One restart of the server drains the pool once, however many connections notice it."""


class Database:
    """A pool of connections to one database, in one role. Open it with `Database.open`."""

    def __init__(self, pool: AsyncConnectionPool[Connection], where: str) -> None:
        self._pool = pool
        self.where = where
        """Host, port and database, without secrets, for messages."""

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        role: str | None = "casework_runtime",
        min_size: int = 1,
        max_size: int = 10,
        name: str = "casework",
        statement_timeout_s: float = 15,
        wait_s: float = 5,
    ) -> Database:
        """Connect once to prove that it works, then open the pool.

        `wait_s` bounds connecting and waiting for a free connection; `statement_timeout_s` bounds every statement.

        Raises:
            StoreUnavailableError: the server cannot be reached or refuses the login, or the role cannot be taken.
        """
        setup = _Setup(role, statement_timeout_s)
        kwargs = {"application_name": name, "connect_timeout": max(2, int(wait_s))}
        await _probe(dsn, kwargs, setup)
        pool = AsyncConnectionPool[Connection](
            dsn,
            kwargs=kwargs,
            min_size=min_size,
            max_size=max_size,
            name=name,
            open=False,
            configure=setup,
            check=setup.check,
            timeout=wait_s,
            reconnect_timeout=wait_s,
        )
        setup.pool = pool
        await pool.open()
        return cls(pool, _where(dsn))

    async def close(self) -> None:
        """Give all connections back to the server."""
        await self._pool.close()

    async def __aenter__(self) -> Database:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One short database transaction: committed at the end of the block, rolled back when it raises.

        Raises:
            StoreUnavailableError: connection trouble, a time-out, a deadlock: nothing was done, or, when the connection
                broke in the commit, perhaps all; every write can be repeated.
            ConflictError: a constraint or guard of the database refused a row.
            FatalError: the database refused a value, or the role lacks a right.
        """
        try:
            async with self._pool.connection() as conn:
                yield conn
        except (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests) as error:
            raise translate(error) from error

    async def ping(self) -> None:
        """Prove that a statement can be run.

        Raises:
            StoreUnavailableError: it cannot.
        """
        async with self.transaction() as conn:
            await conn.execute("select 1")


class _Setup:
    """Makes each new connection ready, and checks it before use."""

    def __init__(self, role: str | None, statement_timeout_s: float) -> None:
        self._role = role
        self._timeout_ms = int(statement_timeout_s * 1000)
        self._drained_at = 0.0
        self.pool: AsyncConnectionPool[Connection] | None = None

    async def __call__(self, conn: Connection) -> None:
        set_json_dumps(values.dumps, conn)
        set_json_loads(values.loads, conn)
        await conn.set_autocommit(True)
        if self._role is not None:
            await conn.execute(sql.SQL("set role {}").format(sql.Identifier(self._role)))
        await conn.execute(
            "select set_config('statement_timeout', %s, false), set_config('timezone', 'UTC', false),"
            " set_config('idle_in_transaction_session_timeout', %s, false)",
            (str(self._timeout_ms), str(4 * self._timeout_ms)),
        )
        await conn.set_autocommit(False)

    async def check(self, conn: Connection) -> None:
        try:
            await AsyncConnectionPool.check_connection(conn)
        except psycopg.Error as error:
            now = time.monotonic()
            if self.pool and is_connection_trouble(error) and now - self._drained_at > _DRAIN_PAUSE_S:
                self._drained_at = now
                await self.pool.drain()
            raise


async def _probe(dsn: str, kwargs: dict[str, Any], setup: _Setup) -> None:
    """One connection outside the pool, whose error is told at once instead of after retries."""
    try:
        async with await AsyncConnection.connect(dsn, **kwargs) as conn:
            await setup(conn)
    except psycopg.Error as error:
        raise cannot_open(error, dsn) from error


def cannot_open(error: psycopg.Error, dsn: str) -> StoreUnavailableError:
    """Why a connection could not be made or made ready, without secrets."""
    if error.sqlstate == "42501":
        remedy = "Let an administrator grant the role to this login: grant casework_runtime to LOGIN."
    elif error.sqlstate in {"22023", "42704"}:
        remedy = "Run `casework migrate`, which makes the roles and grants them to its login."
    else:
        remedy = "Check CASEWORK_DATABASE_URL and that PostgreSQL is up."
    return StoreUnavailableError(f"The database at {_where(dsn)} cannot be used: {str(error).strip()}. {remedy}")


def _where(dsn: str) -> str:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "(a DSN that does not parse)"
    return f"{parts.get('host', 'local socket')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
