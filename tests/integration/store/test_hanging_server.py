"""A server that hangs: it takes connections and answers nothing. Every wait ends all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from casework.errors import StoreUnavailableError
from casework.store.database import Database
from casework.store.local import LocalPostgres
from tests.integration.store.cases import execute

DEADLINE_S = 20.0


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[LocalPostgres]:
    with LocalPostgres(tmp_path / "server", options={"fsync": "off"}) as server:
        yield server


@contextmanager
def hanging(server: LocalPostgres) -> Iterator[None]:
    """The server and all its sessions are stopped in mid-work."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        rows = conn.execute(
            "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        ).fetchall()
    assert server.pid is not None
    stopped = [server.pid, *(row[0] for row in rows)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


async def test_no_wait_is_without_end(own_server: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-18. A statement in flight, a commit, a fresh use and a new pool: each says that the database is away."""
    monkeypatch.setattr("casework.store.connection.GRACE_S", 0.3)
    opening = Database.open(own_server.dsn, role=None, max_size=4, wait_s=1, statement_timeout_s=1)
    async with await opening as db:
        async with asyncio.TaskGroup() as group:
            ready, go_on = asyncio.Event(), asyncio.Event()
            sleeping = group.create_task(_fails(execute(db, "select pg_sleep(30)")))
            committing = group.create_task(_fails(_commit_later(db, ready, go_on)))
            await ready.wait()
            with hanging(own_server):
                go_on.set()
                async with asyncio.timeout(DEADLINE_S):
                    await asyncio.gather(sleeping, committing, _fails(db.ping()))
                    await _fails(Database.open(own_server.dsn, role=None, wait_s=1))
        began = time.monotonic()
        while not await _works(db):
            assert time.monotonic() - began < DEADLINE_S


async def test_who_gives_up_does_not_wait_for_a_hanging_server(own_server: LocalPostgres) -> None:
    """A cancelled statement asks the server to stop it, waits a moment, and leaves the pool whole."""
    async with await Database.open(own_server.dsn, role=None, max_size=1, wait_s=1) as db:
        await db.ping()
        with hanging(own_server):
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await execute(db, "select 1")
            assert time.monotonic() - began < 3
        began = time.monotonic()
        while not await _works(db):
            assert time.monotonic() - began < DEADLINE_S


async def _commit_later(db: Database, ready: asyncio.Event, go_on: asyncio.Event) -> None:
    async with db.transaction() as conn:
        await conn.execute(b"create table public.late ()")
        ready.set()
        await go_on.wait()


async def _fails(use: object) -> None:
    with pytest.raises(StoreUnavailableError):
        await use  # type: ignore[misc]  # any coroutine


async def _works(db: Database) -> bool:
    try:
        await db.ping()
    except StoreUnavailableError:
        return False
    return True
