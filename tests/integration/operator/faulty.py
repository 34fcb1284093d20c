"""Real faults of a database server, each as a context: inside it is there, after it it is gone."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import UUID

import psycopg

from tests.integration.operator.conftest import Site


@asynccontextmanager
async def refusing_writes(site: Site, _: UUID) -> AsyncIterator[None]:
    """The server refuses writes, to the sessions that there are and to new ones."""
    site.does("alter system set default_transaction_read_only = on")
    site.does("select pg_reload_conf()")
    try:
        yield
    finally:
        with site.admin() as conn:
            conn.execute("set default_transaction_read_only = off")
            conn.execute("alter system reset default_transaction_read_only")
            conn.execute("select pg_reload_conf()")


@asynccontextmanager
async def without_a_right(site: Site, _: UUID) -> AsyncIterator[None]:
    """An operator's mistake: a right on one table is revoked."""
    site.does("revoke insert on agent_ops.agent_step_attempts from casework_runtime")
    try:
        yield
    finally:
        site.does("grant insert on agent_ops.agent_step_attempts to casework_runtime")


@asynccontextmanager
async def with_its_row_locked(site: Site, run_id: UUID) -> AsyncIterator[None]:
    """Somebody has the run's row in an open transaction."""
    with site.admin() as conn, conn.transaction():
        conn.execute("select 1 from agent_ops.agent_runs where run_id = %s for update", (run_id,))
        yield


@asynccontextmanager
async def with_no_connection_left(site: Site, _: UUID) -> AsyncIterator[None]:
    """Others hold every connection that is to be had."""
    async with AsyncExitStack() as held:
        with site.admin() as admin:
            await asyncio.to_thread(_fill, site, admin, held)
            yield


def _fill(site: Site, admin: psycopg.Connection[object], held: AsyncExitStack) -> None:
    """Take what is free, cut ours, take what that freed, until ours have none."""
    ours = "from pg_stat_activity where application_name like 'casework%'"
    while True:
        try:
            while True:
                held.callback(psycopg.connect(site.house.dsn).close)
        except psycopg.OperationalError:
            if admin.execute(f"select pg_terminate_backend(pid) {ours}".encode()).fetchone() is None:
                return


@asynccontextmanager
async def killed(site: Site, _: UUID) -> AsyncIterator[None]:
    """The server is killed, and is started again at the end; it recovers by itself."""
    for pid in _family(site.server.pid or 0):
        os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(site.server.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(site.server.start)


@asynccontextmanager
async def stopped(site: Site, _: UUID) -> AsyncIterator[None]:
    """The server hangs: it takes connections and answers nothing."""
    family = _family(site.server.pid or 0)
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    assert pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


@asynccontextmanager
async def in_a_deadlock(site: Site, run_id: UUID) -> AsyncIterator[None]:
    """Somebody locks in another order than we do, and is the more patient one."""
    with site.admin() as conn:
        conn.execute("set deadlock_timeout = '60s'")
        with conn.transaction():
            conn.execute("lock table agent_ops.agent_events in share mode")
            yield
            # Whoever of us waits for the events holds the run's row.
            lock = "select 1 from agent_ops.agent_runs where run_id = %s for update"
            await asyncio.to_thread(conn.execute, lock, (run_id,))
