"""PgQueuer and Procrastinate, as their documentation writes them: a job changes the data of one row of a table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import asyncpg
import procrastinate
from pgqueuer.adapters.drivers.asyncpg import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueEntrypoint, QueueExecutionMode, QueueManagerId
from procrastinate.types import JSONDict
from psycopg_pool import AsyncConnectionPool

from benchmarks.queues.ours import TASKS, TRAY
from benchmarks.support.ground import Servers

AT_ONCE = 8
"""Connections and jobs at once, as many as ours."""
CHUNK = 5_000
TABLE = "create table items (id integer primary key, data jsonb not null)"
MAKE = "insert into items select id, '{\"n\": 0}' from generate_series("
WORK = "update items set data = jsonb_set(data, '{n}', to_jsonb((data->>'n')::int + 1)) where id = "
STALE_AFTER = timedelta(seconds=30)


class PgQueuer:
    """A queue manager that drains the queue, in batches as large as our trays."""

    claim_size = TRAY

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._queries = Queries(AsyncpgPoolDriver(pool))
        self._items = 0

    async def install(self) -> None:
        """Its tables, and the items'."""
        await self._queries.install()
        await self._pool.execute(TABLE)

    async def fill(self, count: int) -> None:
        """So many jobs that wait."""
        await self._enqueue([b"0"] * count)

    async def prepare(self, items: int) -> None:
        """So many items, of `TASKS` jobs each."""
        first, self._items = self._items + 1, self._items + items
        await self._pool.execute(f"{MAKE}{first}, {self._items}) id")
        await self._enqueue([str(n).encode() for _ in range(TASKS) for n in range(first, self._items + 1)])

    async def execute(self) -> None:
        """Work until the queue is empty."""
        manager, pool = QueueManager(self._queries), self._pool

        @manager.entrypoint("work")
        async def work(job: Job) -> None:
            assert job.payload is not None
            await pool.execute(WORK + "$1", int(job.payload))

        await manager.run(batch_size=TRAY, mode=QueueExecutionMode.drain)

    async def claim(self) -> int:
        """One batch; how many it has got."""
        limits = {QueueEntrypoint("work"): EntrypointExecutionParameter(concurrency_limit=0)}
        return len(await self._queries.dequeue(TRAY, limits, QueueManagerId(uuid4()), None, STALE_AFTER))

    async def _enqueue(self, payloads: list[bytes]) -> None:
        for at in range(0, len(payloads), CHUNK):
            chunk = payloads[at : at + CHUNK]
            await self._queries.enqueue(["work"] * len(chunk), list(chunk), [0] * len(chunk))


class Procrastinate:
    """A worker that ends when the queue is empty; it takes its jobs one by one."""

    claim_size = 1

    def __init__(self, dsn: str, pool: AsyncConnectionPool) -> None:
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn, max_size=AT_ONCE))
        self._pool = pool
        self._items = 0
        self._worker: int | None = None

        @self._app.task(name="work")
        async def work(item: int) -> None:
            async with pool.connection() as conn:
                await conn.execute(WORK.encode() + b"%s", [item])

        self._work = work

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Procrastinate]:
        """With its tables, and the items'."""
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()
            async with self._pool.connection() as conn:
                await conn.execute(TABLE)
            yield self

    async def fill(self, count: int) -> None:
        """So many jobs that wait."""
        await self._defer([0] * count)

    async def prepare(self, items: int) -> None:
        """So many items, of `TASKS` jobs each."""
        first, self._items = self._items + 1, self._items + items
        async with self._pool.connection() as conn:
            await conn.execute(f"{MAKE}{first}, {self._items}) id".encode())
        await self._defer([n for _ in range(TASKS) for n in range(first, self._items + 1)])

    async def execute(self) -> None:
        """Work until the queue is empty."""
        await self._app.run_worker_async(wait=False, concurrency=AT_ONCE, install_signal_handlers=False)

    async def claim(self) -> int:
        """One job, as a worker takes it."""
        if self._worker is None:
            self._worker = await self._app.job_manager.register_worker()
        return int(await self._app.job_manager.fetch_job(None, self._worker) is not None)

    async def _defer(self, items: list[int]) -> None:
        for at in range(0, len(items), CHUNK):
            chunk: list[JSONDict] = [{"item": n} for n in items[at : at + CHUNK]]
            await self._work.batch_defer_async(*chunk)


@asynccontextmanager
async def pgqueuer(servers: Servers) -> AsyncIterator[tuple[PgQueuer, str]]:
    """On a database of its own; its URL."""
    dsn = servers.new_database("pgqueuer")
    async with asyncpg.create_pool(dsn, min_size=AT_ONCE, max_size=AT_ONCE) as pool:
        made = PgQueuer(pool)
        await made.install()
        yield made, dsn


@asynccontextmanager
async def procrastinates(servers: Servers) -> AsyncIterator[tuple[Procrastinate, str]]:
    """On a database of its own; its URL."""
    dsn = servers.new_database("procrastinate")
    async with (
        AsyncConnectionPool(dsn, min_size=AT_ONCE, max_size=AT_ONCE, kwargs={"autocommit": True}) as pool,
        Procrastinate(dsn, pool).opened() as made,
    ):
        yield made, dsn
