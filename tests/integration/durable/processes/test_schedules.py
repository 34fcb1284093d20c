"""Schedules of processes, by the times that the real engine reckons: named zones, days of changed clocks, stagger."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from casework.durable.monitor_contracts import PROCESS_WORKFLOW, ProcessEnd, ProcessStart
from casework.errors import InputError
from casework.process.schedules import Overlap, Schedule, half_days, staggered
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.post import Box, ended, furnished, monitor, office, polled, processes

HALF = timedelta(hours=12)
CLOCKS_CHANGE = {
    "Europe/Berlin": (datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)),
    "America/New_York": (datetime(2027, 3, 14, tzinfo=UTC), datetime(2027, 11, 7, tzinfo=UTC)),
}


@pytest.fixture
async def scheduled(house: House) -> House:
    """The house; what it schedules never fires meanwhile, since no worker takes it."""
    return house


@pytest.mark.parametrize("day", [day for days in CLOCKS_CHANGE.values() for day in days], ids=str)
async def test_half_days_follow_each_other_without_overlap_or_gap(scheduled: House, day: datetime) -> None:
    """BP-30: every 12 h, on both days on which clocks change in two zones: the Monitor ends one minute before."""
    client = processes(scheduled)
    await client.schedule(TENANT, "intake", half_days())
    starts = await client.starts(TENANT, "intake", day - 2 * HALF, day + 4 * HALF)
    assert len(starts) >= 6
    assert {later - sooner for sooner, later in itertools.pairwise(starts)} == {HALF}
    assert starts == half_days().starts(starts[0], len(starts))
    await client.unschedule(TENANT, "intake")


@pytest.mark.parametrize("zone", CLOCKS_CHANGE)
async def test_a_named_zone_keeps_its_local_time(scheduled: House, zone: str) -> None:
    """BP-30: cron is local time of a named zone: on those days its distance is 23 and 25 hours, else 24."""
    client = processes(scheduled)
    await client.schedule(TENANT, "intake", Schedule(cron=("30 6 * * *",), zone=zone))
    for day, hours in zip(CLOCKS_CHANGE[zone], (23, 25), strict=True):
        starts = await client.starts(TENANT, "intake", day - 2 * HALF, day + 6 * HALF)
        apart = [(later - sooner) / timedelta(hours=1) for sooner, later in itertools.pairwise(starts)]
        assert sorted(set(apart)) == sorted({24.0, float(hours)})
    await client.unschedule(TENANT, "intake")


async def test_processes_are_staggered(scheduled: House) -> None:
    """BP-31: four processes every 10 minutes start at 0:00, 2:30, 5:00 and 7:30."""
    client, hour = processes(scheduled), datetime(2027, 5, 4, 10, tzinfo=UTC)
    for number, schedule in enumerate(staggered(4, timedelta(minutes=10))):
        await client.schedule(TENANT, f"p{number}", schedule)
        starts = await client.starts(TENANT, f"p{number}", hour - timedelta(seconds=1), hour + timedelta(minutes=19))
        offset = number * timedelta(seconds=150)
        assert starts == [hour + offset, hour + timedelta(minutes=10) + offset]
        await client.unschedule(TENANT, f"p{number}")


async def test_a_schedule_is_kept_field_by_field_and_can_be_changed_and_taken_away(scheduled: House) -> None:
    """BP-30: jitter, overlap policy, catch-up and zone; a second call brings it to what is wanted then."""
    client, queue = processes(scheduled), scheduled.settings.temporal.task_queue
    handle = scheduled.client.get_schedule_handle(f"process/{queue}/{TENANT}/intake")
    every = Schedule(every=timedelta(hours=6), offset=timedelta(hours=1), jitter=timedelta(minutes=5))
    await client.schedule(TENANT, "intake", every)
    found = (await handle.describe()).schedule
    assert [(each.every, each.offset) for each in found.spec.intervals] == [(every.every, every.offset)]
    assert (found.spec.jitter, found.policy.catchup_window) == (every.jitter, every.catch_up)
    await handle.pause(note="for now")
    wanted = Schedule(
        cron=("0 6 * * 1-5",), zone="Europe/Paris", overlap=Overlap.BUFFER_ALL, catch_up=timedelta(days=1)
    )
    await client.schedule(TENANT, "intake", wanted)
    found = (await handle.describe()).schedule
    assert (found.spec.time_zone_name, found.policy.overlap.name) == ("Europe/Paris", "BUFFER_ALL")
    assert not found.spec.intervals
    standing = (await client.describe(TENANT, "intake")).schedule
    assert standing is not None
    assert (standing.paused, standing.note) == (True, "for now")
    assert await client.unschedule(TENANT, "intake")
    assert not await client.unschedule(TENANT, "intake")


async def test_a_zone_that_there_is_not_is_refused(scheduled: House) -> None:
    with pytest.raises(InputError, match="The schedule of process 'intake' is refused"):
        await processes(scheduled).schedule(TENANT, "intake", Schedule(cron=("0 6 * * *",), zone="Europe/Nowhere"))


async def test_a_schedule_starts_the_monitor_and_lasts_as_long_as_it(house: House) -> None:
    """BP-30: so its overlap policy counts; a Monitor that is there already is left alone, and there is one only."""
    await furnished(house)
    once = {"monitors": [{"monitorClass": "Mails", "maxLoops": 1}]}
    queue = house.settings.temporal.task_queue
    async with house.with_app(office(Box(["one"]), json=once)) as there:
        start = ProcessStart(TENANT, "intake", monitor(house).id)
        end = await there.client.execute_workflow(
            PROCESS_WORKFLOW, start, id=f"{queue}-1", task_queue=queue, result_type=ProcessEnd
        )
        assert end.started
        assert end.monitor == await ended(there)
    async with house.with_app(office(Box(["one"]))) as there:
        client = processes(there)
        await client.start(TENANT, "intake", "ann")
        await polled(there, 2)
        end = await there.client.execute_workflow(
            PROCESS_WORKFLOW, start, id=f"{queue}-2", task_queue=queue, result_type=ProcessEnd
        )
        assert end == ProcessEnd(started=False)
        await client.stop(TENANT, "intake", "ann")
        await ended(there)
        end = await there.client.execute_workflow(
            PROCESS_WORKFLOW, start, id=f"{queue}-3", task_queue=queue, result_type=ProcessEnd
        )
        assert end.monitor is not None
        assert (end.monitor.stopped, end.monitor.loops) == ("by_row", 0)
