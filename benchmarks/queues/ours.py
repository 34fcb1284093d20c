"""Ours: a process of three tasks with trays of 100, from its Monitor's poll to COMPLETED."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from benchmarks.support.ground import LOOK_EVERY_S, PATIENCE_S, TENANT, Servers, Side, working
from casework.app import App
from casework.durable.client import RunClient
from casework.durable.process_client import ProcessClient
from casework.durable.worker import make_worker
from casework.examples.loan_underwriting.application import POLICY
from casework.process import SUBMISSION, Change, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.tasks import Task
from casework.store.processes import claims

TASKS = 3
TRAY = 100
WAITING, WORKING = "PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS"
CHUNK = 20_000
"""Rows of one statement, which has to end within the pool's time-out."""
_FILL = b"""
    insert into process_ops.transactions (tenant, uuid, root_uuid, status, start_time, data, updated_at)
    select %(tenant)s, id, id, %(status)s, now(), '{"n": 0}', now()
    from (select gen_random_uuid() as id from generate_series(1, %(count)s)) made"""
_UNDER_WAY = b"select exists (select from process_ops.transactions where tenant = %s and end_time is null)"
_ONCE_A_DAY = {"monitors": [{"monitorClass": "SubmissionMonitor", "pollingInterval": "P1D", "sleepTime": "P1D"}]}


def _computing(name: str) -> type[Task]:
    @bot_task(name, effects=False)
    class Computing(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002
            return Change(data={"n": transaction.data["n"] + 1})

    return Computing


def _transactional(name: str) -> type[Task]:
    @bot_task(name)
    class Transactional(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002
            return Change(data={"n": transaction.data["n"] + 1})

    return Transactional


def _app(task: Callable[[str], type[Task]]) -> App:
    tasks = tuple(task(name) for name in ("first", "second", "third"))
    return App(processes=[replace(SUBMISSION, tasks=tasks, tray_size=TRAY)], monitors=_ONCE_A_DAY)


computing, transactional = _app(_computing), _app(_transactional)


class Ours:
    """A worker at work, with a Monitor that polls when it is told to."""

    claim_size = TRAY

    def __init__(self, side: Side) -> None:
        self._side = side
        runs = RunClient(side.client, side.settings.temporal.task_queue, side.settings.histories)
        self._processes = ProcessClient(runs, side.settings.histories)

    async def fill(self, count: int) -> None:
        """So many Transactions that wait."""
        for first in range(0, count, CHUNK):
            async with self._side.db.transaction() as conn:
                params = {"tenant": TENANT, "status": WAITING, "count": min(CHUNK, count - first)}
                await conn.execute(_FILL, params)

    async def prepare(self, items: int) -> None:
        """So many items, of `TASKS` tasks each."""
        await self.fill(items)

    async def execute(self) -> None:
        """Poll, and wait until all that was prepared is COMPLETED."""
        if not await self._processes.start(TENANT, SUBMISSION.name, "benchmark"):
            await self._processes.poll_now(TENANT, SUBMISSION.name, "benchmark")
        async with asyncio.timeout(PATIENCE_S):
            while await self._under_way():  # noqa: ASYNC110  # no event tells of another's commit
                await asyncio.sleep(LOOK_EVERY_S)

    async def claim(self) -> int:
        """One claim of a tray; how many it has got."""
        async with self._side.db.autocommit() as conn:
            found = await claims.claim(
                conn,
                TENANT,
                status=WAITING,
                into=WORKING,
                claim_id=uuid4(),
                most=TRAY,
                process=SUBMISSION.name,
                by="SubmissionMonitor",
                at=datetime.now(UTC),
            )
        return len(found)

    async def _under_way(self) -> bool:
        async with self._side.db.transaction() as conn:
            row = await (await conn.execute(_UNDER_WAY, [TENANT])).fetchone()
        assert row is not None
        return bool(row[0])


@asynccontextmanager
async def ours(servers: Servers, name: str, app: App) -> AsyncIterator[tuple[Ours, str]]:
    """At work on a database `name` of its own; its URL."""
    async with servers.side(name, app, POLICY.read_text()) as side:
        worker = make_worker(side.client, side.services, side.settings)
        async with working([worker]):
            yield Ours(side), side.dsn
