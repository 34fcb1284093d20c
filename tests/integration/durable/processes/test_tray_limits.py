"""Tasks with a limit, on a real engine: it counts Transactions, over all workers, and changes with a release."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle

from casework.durable.connection import connect
from casework.durable.process_contracts import limited_queue, station_queue
from casework.durable.queues import QueuesWorker
from casework.durable.worker import make_worker
from casework.process import (
    BusinessProcess,
    Change,
    PlainTask,
    TaskContext,
    Transaction,
    TransactionMonitorTask,
    bot_task,
)
from tests.integration.durable.building import a_worker, make_current
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.integration.durable.processes.waiting_app import Assess, app
from tests.replay.replaying import replayer
from tests.unit.process.lines import plain, process


def calling(per_second: float | None) -> BusinessProcess:
    """A process with one task that has this limit."""

    @bot_task("call", repeat="keyed", max_per_second=per_second)
    class Call(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"called": ctx.attempt})

    return process(Call, tray_size=20)


class Others(TransactionMonitorTask):
    status_to_monitor, status_to_set = "PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS"


FREE = BusinessProcess(name="free", monitor=Others, tasks=(plain("a"), plain("b")), tray_size=20)


async def events(handle: WorkflowHandle[Any, Any], kind: EventType.ValueType) -> list[HistoryEvent]:
    return [each for each in (await handle.fetch_history()).events if each.event_type == kind]


async def queues(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """The queues of a tray's activities, in their order."""
    found = await events(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    return [each.activity_task_scheduled_event_attributes.task_queue.name for each in found]


async def test_a_limit_counts_transactions_over_all_workers_and_changes_with_a_release(house: House) -> None:
    """BP-32: at one in a hundred seconds two workers begin on one of six, however many trays pass beside it.

    Of a started activity the engine's history tells; one or two are allowed, should the other tray take very long. The
    workers of another release bring another limit, which holds at once.
    """
    uuids = []
    async with yard(house, project(calling(0.01), FREE)) as here:
        second = await connect(house.settings)
        async with make_worker(second, here.house.services(), here.house.settings):
            uuids += [await here.add() for _ in range(6)]
            handle = await here.start(await here.claimed())

            async def begun() -> int:
                return sum([bool(await here.steps(uuid)) for uuid in uuids])

            await eventually(begun, "one was begun on")
            for _ in range(20):
                await here.add(status="PROCESSING_COMPLETED")
            assert (await here.walk("free")).left == 0
            assert len(await events(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)) <= 2
            assert await begun() <= 2
    async with yard(house, project(calling(100), FREE)) as here:
        assert (await handle.result()).left == 0
        assert [(await here.get(uuid)).data for uuid in uuids] == [{"called": 1}] * 6
    here_too = house.settings.temporal.task_queue
    assert await queues(handle) == [*[limited_queue(here_too, "call")] * 6, station_queue(here_too)]
    await replayer().replay_workflow(await handle.fetch_history())


async def test_a_tray_that_began_before_the_limit_came_keeps_to_it(house: House) -> None:
    """BP-32: the worker that takes a task knows its limit; a tray that does not is told, and sends one by one."""
    async with yard(house, project(calling(None)), works=False) as here:
        for _ in range(3):
            await here.add()
        handle = await here.start(await here.claimed())
    async with yard(house, project(calling(100))) as here:
        assert (await handle.result()).left == 0
    common = house.settings.temporal.task_queue
    told, end = station_queue(common), station_queue(common)
    assert await queues(handle) == [told, *[limited_queue(common, "call")] * 3, end]


async def test_a_limit_of_an_agent_task_counts_the_runs_that_begin(house: House) -> None:
    """BP-32: the run is begun in the task's queue; it and its end are where all runs are."""

    @bot_task("assess", max_per_second=100)
    class Limited(Assess):
        workflow: ClassVar[str] = "assess"

    house.app = app(process(Limited))
    await house.open()
    desk = Desk(house)
    uuid = await desk.add({"n": 5})
    async with house.worker():
        handle = await desk.tray(uuid, "processing")
        assert (await handle.result()).left == 0
    common = house.settings.temporal.task_queue
    assert (await queues(handle))[:2] == [limited_queue(common, "assess"), common]
    [linked] = await desk.runs(uuid)
    assert (await house.run(linked.run_id)).task_queue == common


async def test_a_build_without_the_limit_becomes_current(house: House) -> None:
    """BP-32, DA-19: with builds a task's queue is served by each, and one without it can be made current."""
    house.app = project(calling(100), FREE)
    async with a_worker(house, "one"):
        await make_current(house, "one")
        here = Yard(house)
        await here.add()
        assert (await here.walk()).left == 0
        house.app = project(calling(None), FREE)
        async with a_worker(house, "two"):
            await make_current(house, "two")
            await here.add()
            assert (await here.walk()).left == 0


class _Broken:
    """A worker that fails when it runs."""

    async def run(self) -> None:
        raise ConnectionError("the queue is gone")

    async def shutdown(self) -> None:
        return None


async def test_a_queue_that_cannot_be_served_ends_the_worker(house: House) -> None:
    """No worker goes on with a part of its queues."""
    made = house.worker()
    assert isinstance(made, QueuesWorker)
    made.beside = [_Broken()]  # type: ignore[list-item]  # as much of a worker as is used
    with pytest.raises(ConnectionError, match="the queue is gone"):
        async with made:
            await asyncio.Event().wait()
