"""What every part of the process drill stands on: a stack, the destination, workers, and Transactions that wait."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx2
import psycopg

from casework.drills.destination import DestinationProcess
from casework.drills.process_app import DESTINATION, PROCESS, TABLE, WAITING
from casework.drills.promises import BrokenOffError, Report
from casework.drills.stack import Crew, LocalStack
from casework.rehearsal import Destination
from casework.store.database import Database
from casework.store.processes import audit
from casework.store.roles import RUNTIME

TENANT = "default"
LOOK_EVERY_S = 0.2
LATENCY_S = 0.02
"""Seconds that the destination takes to answer."""
FILL = """
with made as (
    insert into process_ops.transactions
        (tenant, uuid, root_uuid, status, natural_key, priority, start_time, data, updated_at)
    select %(tenant)s, id, id, %(status)s, %(prefix)s || '-' || n, n %% 7, now(), '{}', now()
    from (select n, gen_random_uuid() as id from generate_series(1, %(number)s) n) numbered
    returning tenant, uuid, status, start_time)
insert into process_ops.transaction_stages (tenant, transaction_uuid, after, process, made_by, at)
select tenant, uuid, status, '', 'drill', start_time from made returning transaction_uuid
"""
"""Transactions that wait, all in one statement, each with the stage of its birth."""

Found = TypeVar("Found")


class ProcessGround:
    """The stack with its servers, open as an async context manager from the main thread.

    Args:
        stack: Not started yet.
        folder: There is one; it takes what the destination leaves.
    """

    def __init__(self, stack: LocalStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        command = (sys.executable, "-m", "casework.drills.process_destination")
        self.destination = DestinationProcess(Destination(command, (DESTINATION,)), folder, LATENCY_S)
        self.crew = Crew(stack, {})

    async def __aenter__(self) -> Self:
        try:
            await self.destination.start()
            await self.stack.start(workers=0)
            self.crew = Crew(self.stack, {DESTINATION: self.destination.url})
            await self.owner(TABLE)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def owner(self, statement: str, **params: Any) -> list[Any]:
        """What a statement gives, by the owner of the database."""
        async with await psycopg.AsyncConnection.connect(self.stack.admin_dsn) as conn:
            cursor = await conn.execute(statement.encode(), params or None)
            return await cursor.fetchall() if cursor.description else []

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """The database as a worker has it."""
        dsn = self.stack.settings.database.runtime_dsn()
        async with await Database.open(dsn, role=RUNTIME, max_size=2, name="casework-drill") as db:
            yield db

    async def put_in(self, prefix: str, number: int, status: str = WAITING, tenant: str = TENANT) -> list[UUID]:
        """Have so many Transactions wait; `prefix` begins the natural key of each."""
        rows = await self.owner(FILL, tenant=tenant, status=status, prefix=prefix, number=number)
        return [uuid for (uuid,) in rows]

    async def start(self, process: str = PROCESS) -> None:
        """Start the Monitor of a process; one that runs is left alone.

        Raises:
            BrokenOffError: the API refuses.
        """
        headers = {"Authorization": f"Bearer {self.stack.token}"}
        async with httpx2.AsyncClient(
            base_url=self.stack.api_url, headers=headers, trust_env=False, timeout=40
        ) as client:
            answer = await client.post(f"/v1/processes/{process}/start", json={})
        if not answer.is_success:
            raise BrokenOffError(f"The API refused to start {process}: {answer.status_code} {answer.text[:500]}")

    async def balance(self, report: Report, tenant: str = TENANT) -> None:
        """Promise that the books balance."""
        async with self.database() as db, db.transaction() as conn:
            books = await audit.books(conn, tenant)
        told = [f"{each.check.of} {each.id}: {each.check.fault}: {each.found}" for each in books.faults[:5]]
        report.promise("The books balance", books.balance, told)

    async def _close(self) -> None:
        self.destination.stop()
        await self.stack.stop()


async def until(look: Callable[[], Awaitable[Found | None]], what: str, within_s: float) -> Found:
    """What `look` finds, as soon as it finds something.

    Raises:
        BrokenOffError: not within so many seconds.
    """
    end = time.monotonic() + within_s
    while True:
        if found := await look():
            return found
        if time.monotonic() > end:
            raise BrokenOffError(f"Not within {within_s:g} s: {what}.")
        await asyncio.sleep(LOOK_EVERY_S)
