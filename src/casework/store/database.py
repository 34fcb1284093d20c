"""The connection pool: short database transactions in one role, and healing after the server was away.

A connection takes its role (`SET ROLE`), its time-outs and UTC when it is made and each time it comes back. It is
checked when it is handed out; one that fails the check drains the pool, because after a restart of the server the
others are as dead. So does a server that takes no writes: after a failover the old one may live on, read-only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from casework.store.connection import GRACE_S, BoundedConnection, Connection, Setup
from casework.store.dsn import Parts, cannot_open, options, parsed, place
from casework.store.faults import takes_no_writes, translate

__all__ = ["Connection", "Database"]


class Database:
    """A pool of connections to one database, in one role. Open it with `Database.open`."""

    def __init__(self, pool: AsyncConnectionPool[BoundedConnection], setup: Setup, where: str) -> None:
        self._pool, self._setup = pool, setup
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
        statement_timeout_s: float = 10,
        wait_s: float = 5,
    ) -> Database:
        """Connect once to prove that it works, then open the pool.

        `wait_s` bounds connecting and waiting for a free connection; `statement_timeout_s` bounds every statement, by
        the server and, a few seconds later, from this side. It is shorter than an attempt to write (15 s), so that the
        attempt can say what was the matter.

        Raises:
            SettingsError: `dsn` does not parse.
            StoreUnavailableError: the server cannot be reached or refuses the login, or the role cannot be taken.
        """
        parts = parsed(dsn)
        setup = Setup(role, statement_timeout_s, wait_s)
        kwargs = options(parts, name, wait_s, statement_timeout_s + GRACE_S)
        await _probe(dsn, parts, kwargs, setup)
        pool = AsyncConnectionPool(
            dsn,
            connection_class=BoundedConnection,
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
        return cls(pool, setup, place(parts))

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
            StoreUnavailableError: connection trouble, a time-out, a deadlock, a missing right: nothing was done, or,
                when the connection broke in the commit, perhaps all; every write can be repeated.
            ConflictError: a constraint or guard of the database refused a row.
            FatalError: the database refused a value.
        """
        async with self._borrowed(autocommit=False) as conn, conn:
            yield conn

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Connection]:
        """A connection on which each statement is committed by itself, in the same trip to the server.

        Raises:
            StoreUnavailableError, ConflictError, FatalError: as `transaction`, for the statement that was the last.
        """
        async with self._borrowed(autocommit=True) as conn:
            yield conn

    @asynccontextmanager
    async def _borrowed(self, *, autocommit: bool) -> AsyncIterator[BoundedConnection]:
        """A connection of the pool, in this mode; it keeps its mode, since the next borrower wants the same as a rule.

        Raises:
            StoreUnavailableError, ConflictError, FatalError: as `transaction`.
        """
        try:
            conn = await self._pool.getconn()
            try:
                if conn.autocommit != autocommit:
                    await conn.set_autocommit(autocommit)
                yield conn
            finally:
                try:
                    await self._setup.reset(conn)
                finally:
                    await self._pool.putconn(conn)
        except (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests) as error:
            if takes_no_writes(error):
                await self.renew()
            raise translate(error) from error

    async def renew(self) -> None:
        """Leave every session behind; once a second at most. For who sees that the server is not the right one."""
        await self._setup.drain()

    async def ping(self) -> None:
        """Prove that a statement can be run.

        Raises:
            StoreUnavailableError: it cannot.
        """
        async with self.transaction() as conn:
            await conn.execute("select 1")


async def _probe(dsn: str, parts: Parts, kwargs: dict[str, Any], setup: Setup) -> None:
    """One connection outside the pool, whose error is told at once instead of after retries."""
    try:
        async with await BoundedConnection.connect(dsn, **kwargs) as conn:
            await setup(conn)
    except psycopg.Error as error:
        raise cannot_open(error, parts) from error
