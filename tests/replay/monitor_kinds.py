"""Kinds of Monitors whose histories are kept. `kinds` keeps them with the others."""

from __future__ import annotations

from pathlib import Path

from casework.durable.monitor_contracts import (
    MONITOR_WORKFLOW,
    PROCESS_WORKFLOW,
    MonitorStart,
    ProcessStart,
    monitor_id,
)
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.post import Box, ended, furnished, office, polled, processes

QUICK = {"pollingInterval": "PT2S", "sleepTime": "PT1S", "maxLoops": 3}


def _known(house: House) -> str:
    return monitor_id(house.settings.temporal.task_queue, TENANT, "intake")


async def a_monitor(house: House, _: Path) -> str:
    """It polls by itself and by hand, with wakes between, and is stopped by hand."""
    await furnished(house)
    often = {**QUICK, "maxLoops": 100}
    async with house.with_app(
        office(Box(["one", "bad"]), json={"monitors": [{"monitorClass": "Mails", **often}]})
    ) as there:
        client = processes(there)
        await client.start(TENANT, "intake", "ann")
        await polled(there, 2)
        await client.poll_now(TENANT, "intake", "ann")
        await polled(there, 3)
        await client.stop(TENANT, "intake", "ann")
        await ended(there)
    return _known(house)


async def a_monitor_that_rolled_over(house: House, _: Path) -> str:
    """Its life has several histories, and ends by loops."""
    await furnished(house)
    start = MonitorStart(TENANT, "intake", "ann", roll_over_events=20)
    async with house.with_app(office(Box(["one"]), json={"monitors": [{"monitorClass": "Mails", **QUICK}]})) as there:
        queue = there.settings.temporal.task_queue
        await there.client.start_workflow(MONITOR_WORKFLOW, start, id=_known(house), task_queue=queue)
        await ended(there)
    return _known(house)


async def a_scheduled_monitor(house: House, _: Path) -> str:
    """What a schedule starts: it waits for the Monitor's end."""
    await furnished(house)
    once = {**QUICK, "maxLoops": 1}
    async with house.with_app(office(Box(["one"]), json={"monitors": [{"monitorClass": "Mails", **once}]})) as there:
        queue = there.settings.temporal.task_queue
        await there.client.execute_workflow(
            PROCESS_WORKFLOW, ProcessStart(TENANT, "intake", _known(house)), id=f"process-{queue}", task_queue=queue
        )
    return f"process-{house.settings.temporal.task_queue}"


ALL = (a_monitor, a_monitor_that_rolled_over, a_scheduled_monitor)
