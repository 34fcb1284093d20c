"""Schedules of processes that fire, on the real engine: what becomes of a start while the Monitor is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import ScheduleDescription, WorkflowExecution

from casework.cli.preparation import declare_schedules
from casework.durable.monitor_contracts import ProcessEnd
from casework.process.schedules import Overlap, Schedule, half_days
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes.post import Box, ended, furnished, monitor, office, polled, processes

NEVER = timedelta(days=3000)
"""So often a schedule starts by itself here: what it fires, a test triggers."""


class Fired:
    """The schedule of the intake, and what it has started."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._id = f"process/{house.settings.temporal.task_queue}/{TENANT}/intake"

    async def fire(self) -> None:
        await self.house.client.get_schedule_handle(self._id).trigger()

    async def until_skipped(self) -> None:
        """Fire until a start was skipped. Two firings in one second are one to the engine, so that two may not do."""

        async def look() -> bool:
            if (await self.described()).info.num_actions_skipped_overlap:
                return True
            await self.fire()
            return False

        await eventually(look, "a start is skipped", 60)

    async def described(self) -> ScheduleDescription:
        return await self.house.client.get_schedule_handle(self._id).describe()

    async def starts(self) -> list[WorkflowExecution]:
        """What it has started, the oldest first, as soon as the engine lists it."""
        query = f"TemporalScheduledById = '{self._id}'"
        found = [each async for each in self.house.client.list_workflows(query)]
        return sorted(found, key=lambda each: each.start_time)

    async def started(self, count: int) -> list[WorkflowExecution]:
        async def look() -> list[WorkflowExecution] | None:
            found = await self.starts()
            return found if len(found) >= count else None

        return await eventually(look, f"{count} starts", 60)

    async def end(self, start: WorkflowExecution) -> ProcessEnd:
        handle: Any = self.house.client.get_workflow_handle(start.id, run_id=start.run_id, result_type=ProcessEnd)
        end: ProcessEnd = await handle.result()
        return end


@pytest.fixture
async def there(house: House) -> AsyncIterator[House]:
    """An office with a worker, whose Monitor lives until it is stopped."""
    await furnished(house)
    async with house.with_app(office(Box(["one"]))) as made:
        yield made


async def test_a_start_while_the_monitor_lives_is_skipped(there: House) -> None:
    """BP-30, SKIP: a second firing starts nothing, and the engine counts it."""
    client, fired = processes(there), Fired(there)
    await client.schedule(TENANT, "intake", Schedule(every=NEVER, overlap=Overlap.SKIP))
    await fired.fire()
    await polled(there)
    await fired.until_skipped()
    await client.unschedule(TENANT, "intake")
    await client.stop(TENANT, "intake", "ann")
    await ended(there)
    [only] = await fired.started(1)
    assert (await fired.end(only)).started


async def test_one_start_waits_for_the_monitor_before_it(there: House) -> None:
    """BP-30, BUFFER_ONE: of all firings while it lives one is kept, to start behind it; the rest is skipped."""
    client, fired = processes(there), Fired(there)
    await client.schedule(TENANT, "intake", Schedule(every=NEVER, overlap=Overlap.BUFFER_ONE))
    await fired.fire()
    await polled(there)
    first = await monitor(there).describe()
    await fired.until_skipped()
    await monitor(there).terminate("its limits, in a moment")

    async def another() -> bool:
        found = await monitor(there).describe()
        return found.run_id != first.run_id

    await eventually(another, "the kept start has its Monitor", 60)
    await client.stop(TENANT, "intake", "ann")
    assert len(await fired.started(2)) == 2
    await client.unschedule(TENANT, "intake")


async def test_a_start_beside_a_monitor_leaves_it_alone(there: House) -> None:
    """BP-30, ALLOW_ALL: each firing starts, and a process has one Monitor all the same."""
    client, fired = processes(there), Fired(there)
    await client.schedule(TENANT, "intake", Schedule(every=NEVER, overlap=Overlap.ALLOW_ALL))
    await fired.fire()
    await polled(there)
    first = await monitor(there).describe()

    async def another() -> WorkflowExecution | None:
        await fired.fire()  # as in `until_skipped`
        found = await fired.starts()
        return found[1] if len(found) > 1 else None

    second = await eventually(another, "a second start", 60)
    assert await fired.end(second) == ProcessEnd(started=False)
    assert (await monitor(there).describe()).run_id == first.run_id
    await client.unschedule(TENANT, "intake")
    await client.stop(TENANT, "intake", "ann")


async def test_what_a_process_declares_is_scheduled_unless_an_operator_has_set_another(house: House) -> None:
    """BP-30: `casework dev` sees to it at its start; the next release's declaration takes the place of its own."""
    client = processes(house)

    async def declared(schedule: Schedule) -> list[str]:
        return await declare_schedules(office(Box(), schedule=schedule), house.settings)

    assert await declared(half_days()) == ["Process intake is scheduled as it declares."]
    assert await declared(half_days()) == []
    assert await declared(Schedule(every=timedelta(hours=6))) == ["Process intake is scheduled as it declares."]
    standing = (await client.describe(TENANT, "intake")).schedule
    assert standing is not None
    assert standing.next_starts[1] - standing.next_starts[0] == timedelta(hours=6)
    await client.schedule(TENANT, "intake", half_days())
    assert "is kept as an operator set it" in (await declared(Schedule(every=timedelta(hours=6))))[0]
    await client.schedule(TENANT, "intake", half_days(), declared=True)
    assert await declared(half_days()) == []
    await client.unschedule(TENANT, "intake")
    assert await declare_schedules(office(Box()), house.settings) == []
