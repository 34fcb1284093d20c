"""One connection of the pool: it waits no longer than it should, and goes back as it came.

The server bounds every statement itself (`statement_timeout`), but a server that hangs bounds nothing: the connection
is then cut from this side. What a borrower changed on the session (role, time-outs, temporary tables, locks) is undone
when the connection goes back to the pool; this package's own queries change nothing there, so that theirs goes back as
it is. A check at each use and a cleaning after it were a quarter of a worker's time with the database.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.abc import RV, PQGen
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool

from casework import values
from casework.store.faults import is_connection_trouble

Connection = AsyncConnection[Any]
CANCEL_S = 1.0
"""How long a server may take to stop a statement that nobody waits for any more, before the connection is cut."""
GRACE_S = 5.0
"""How much longer than the server's own bound an answer may take, before the connection is cut."""
IDLE_S = 5.0
"""A connection that was used more recently is checked by a look at its socket alone: a server that went away has
closed it. Of one that was idle for longer the server is asked, since a network forgets such connections silently."""
IDLE_IN_TRANSACTION_S = 5.0
"""The server ends a transaction that has sent nothing for so long: its process is frozen or cut off, and holds the
run's row. Under the statement time-out, so that who waits for the row gets it; the next attempt is one of those."""
_DRAIN_PAUSE_S = 1.0
"""One restart of the server drains the pool once, however many connections notice it."""
# Not DISCARD ALL, which would throw the prepared statements away that the next user wants.
_CLEAN = (
    "close all; set session authorization default; reset role; reset all; unlisten *;"
    " select pg_advisory_unlock_all(); discard temp; discard sequences"
)


class BoundedConnection(AsyncConnection[Any]):
    """A connection on which no wait for the server is without end."""

    patience_s: float | None = None
    """Seconds for one answer; None while connecting, which has a time-out of its own."""
    lent = False
    """Whether somebody else's statements ran on it since it left the pool."""
    used_at = 0.0
    """When it came back to the pool, in seconds of the monotonic clock."""
    _timer: asyncio.TimerHandle | None = None

    async def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """As the driver's, cut when the answer takes too long; the driver then reports a lost connection."""
        if self.patience_s is None:
            return await super().wait(gen, *args, **kwargs)
        self._timer = asyncio.get_running_loop().call_later(self.patience_s, self._cut)
        try:
            return await super().wait(gen, *args, **kwargs)
        finally:
            self._timer.cancel()

    async def cancel_safe(self, *, timeout: float = CANCEL_S) -> None:  # noqa: ASYNC109 - the driver's
        """As the driver's, which calls it in `wait` for whoever gave up; a server that hangs would keep them waiting.

        One that answers stops the statement, and the session lives on.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(CANCEL_S, self._cut)
        await super().cancel_safe(timeout=min(timeout, CANCEL_S))

    def is_fresh(self) -> bool:
        """Whether it was used a moment ago, and the server has said nothing since, not even that it closes."""
        if time.monotonic() - self.used_at > IDLE_S:
            return False
        waiting = select.poll()
        waiting.register(self.fileno(), select.POLLIN)
        return not waiting.poll(0)

    def _cut(self) -> None:
        """End the stream under the driver: a cancellation alone would have it wait for the server's consent."""
        try:
            with socket.socket(fileno=os.dup(self.fileno())) as stream:
                stream.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # it broke in this moment, and the driver sees that as well


class Setup:
    """Makes each new connection ready, checks it before use, and cleans it after."""

    def __init__(self, role: str | None, statement_timeout_s: float, wait_s: float) -> None:
        self._role = role
        self._timeout_ms = int(statement_timeout_s * 1000)
        self._patience_s = statement_timeout_s + GRACE_S
        self._check_s = min(wait_s, self._patience_s)
        self._drained_at = 0.0
        self.pool: AsyncConnectionPool[BoundedConnection] | None = None

    async def __call__(self, conn: BoundedConnection) -> None:
        """For a new connection."""
        conn.patience_s = self._patience_s
        set_json_dumps(values.dumps, conn)
        set_json_loads(values.loads, conn)
        await self._run(conn, self._settings())

    async def reset(self, conn: BoundedConnection) -> None:
        """For a connection that comes back, in one round trip where it was lent; closed where that fails."""
        if conn.lent:
            try:
                await self._run(conn, sql.SQL("{}; {}").format(sql.SQL(_CLEAN), self._settings()))
            except psycopg.Error:
                await conn.close()
            except BaseException:
                await conn.close()
                raise
        conn.lent, conn.used_at = False, time.monotonic()

    async def check(self, conn: BoundedConnection) -> None:
        """For a connection that is about to be used."""
        if conn.is_fresh():
            return
        conn.patience_s = self._check_s
        try:
            await AsyncConnectionPool.check_connection(conn)
        except psycopg.Error as error:
            if is_connection_trouble(error):
                await self.drain()
            raise
        finally:
            conn.patience_s = self._patience_s

    async def drain(self) -> None:
        """Have every connection of the pool made anew: those that are out are closed when they come back."""
        now = time.monotonic()
        if self.pool and now - self._drained_at > _DRAIN_PAUSE_S:
            self._drained_at = now
            await self.pool.drain()

    async def _run(self, conn: Connection, statements: sql.Composed) -> None:
        await conn.set_autocommit(True)
        await conn.execute(statements)
        await conn.set_autocommit(False)

    def _settings(self) -> sql.Composed:
        role = sql.SQL("set role {};").format(sql.Identifier(self._role)) if self._role is not None else sql.SQL("")
        return sql.SQL(
            "{} set statement_timeout = {}; set timezone = 'UTC'; set idle_in_transaction_session_timeout = {}"
        ).format(
            role, sql.Literal(self._timeout_ms), sql.Literal(min(int(IDLE_IN_TRANSACTION_S * 1000), self._timeout_ms))
        )
