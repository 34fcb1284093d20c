"""Work of trays for which a worker has no room waits at the engine, and not in the worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowHandle

from casework.process import Change, PlainTask, TaskContext, Transaction, bot_task
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import process

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
SCHEDULED = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


async def pending(trays: list[WorkflowHandle[Any, Any]]) -> Counter[int]:
    """How many activities of these trays are in each state."""
    told = [(await tray.describe()).raw_description.pending_activities for tray in trays]
    return Counter(each.state for activities in told for each in activities)


async def test_a_worker_takes_no_more_stations_than_it_has_room_for(house: House) -> None:
    """BP-10, BP-32: of five trays, two are worked on; the rest wait without a worker, and each comes to its end."""
    arrived, opened = Counter[str](), asyncio.Event()

    @bot_task("hold", effects=False)
    class Hold(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            arrived[str(transaction.uuid)] += 1
            await opened.wait()
            return None

    narrow = replace(house, settings=replace(house.settings, worker=replace(house.settings.worker, max_stations=2)))
    async with yard(narrow, project(process(Hold))) as here:
        uuids = [await here.add() for _ in range(5)]
        trays = [await here.start(await here.claimed(most=1)) for _ in uuids]

        async def full() -> bool:
            return await pending(trays) == {STARTED: 2, SCHEDULED: 3}

        await eventually(full, "two stations are taken, and three wait")
        assert len(arrived) == 2
        opened.set()
        await asyncio.gather(*(tray.result() for tray in trays))
        assert await here.statuses(uuids) == ["PROCESSING_COMPLETED"] * 5
    assert set(arrived.values()) == {1}
