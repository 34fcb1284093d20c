"""Claims of Monitors: nothing is emitted twice, and what was claimed gets its tray, whoever dies between."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from uuid import UUID

import pytest

from casework.app import App
from casework.durable.activities.emitting import StoreEmitter
from casework.durable.connection import connect
from casework.durable.monitor_contracts import MonitorPoll, PollReport
from casework.durable.trays import tray_id
from casework.durable.worker import make_worker
from casework.errors import RetryableError
from casework.process import PROCESSING, BusinessProcess, ErrorPolicy, Transaction
from casework.process.monitor_runners import TransactionMonitorRunner
from casework.process.monitors import ProcessingMonitor
from casework.store.processes import claims
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes.post import add, monitor, polled, processes, rounds, sql
from tests.replay.replaying import replayer

TRAYS = replace(PROCESSING, tray_size=10)
RECORDS = "select count(*) from process_ops.monitor_records where not _sys_repeat"


class Trays:
    """Notes what was to be started; the first `lost` starts never happen, as the worker was killed before."""

    def __init__(self, lost: int = 0) -> None:
        self.started: list[list[Transaction]] = []
        self.lost = lost

    async def start(self, tray: list[Transaction]) -> None:
        if self.lost:
            self.lost -= 1
            raise ConnectionError("killed")
        self.started.append(tray)

    @property
    def uuids(self) -> list[UUID]:
        return [each.uuid for tray in self.started for each in tray]


async def poll(
    house: House, trays: Trays, life: str, *, attempt: int = 1, number: int = 2, process: BusinessProcess = TRAYS
) -> PollReport:
    """One poll by the activity's own means, without an engine."""
    line = App(processes=[process]).lines()[process.name]
    emitter = StoreEmitter(house.db, line, MonitorPoll(TENANT, process.name, life, number), attempt, trays.start)
    async with emitter:
        await TransactionMonitorRunner().poll(ProcessingMonitor(), emitter)
    return emitter.report


async def test_eight_monitors_at_once_emit_each_transaction_once(house: House) -> None:
    """BP-18: whoever polls, and however many at once, no Transaction is emitted twice."""
    waiting = await add(house, 500)
    trays = [Trays() for _ in range(8)]
    reports = await asyncio.gather(*(poll(house, each, f"life-{number}") for number, each in enumerate(trays)))
    emitted = Counter(uuid for each in trays for uuid in each.uuids)
    assert emitted == Counter(waiting)
    assert sum(report.claimed for report in reports) == 500
    claims_of = {tray[0].claim_id for each in trays for tray in each.started}
    assert len(claims_of) == sum(len(each.started) for each in trays)


async def test_what_was_claimed_before_the_kill_is_started_by_the_repeated_poll(house: House) -> None:
    """BP-18: killed between claim and start: the repeated poll finds the rows that bear the claim, and goes on."""
    waiting = await add(house, 35)
    trays = Trays(lost=2)
    with pytest.raises(RetryableError, match="2 trays could not be started"):
        await poll(house, trays, "life")
    assert len(trays.started) == 2
    more = await add(house, 5)
    report = await poll(house, trays, "life", attempt=2)
    assert report.claimed == 5
    assert set(trays.uuids) == {*waiting, *more}
    first = {tuple(each.uuid for each in tray) for tray in trays.started}
    assert all(len({each.claim_id for each in tray}) == 1 for tray in trays.started)
    assert len(first) == 5  # the two that were started before are asked for again, as the same


async def test_the_first_poll_of_a_life_finds_what_the_life_before_left(house: House) -> None:
    """A Monitor that was terminated between claim and start leaves nothing behind."""
    await add(house, 10)
    trays = Trays(lost=1)
    with pytest.raises(RetryableError, match="1 trays could not be started"):
        await poll(house, trays, "life-1")
    assert trays.started == []
    assert (await poll(house, trays, "life-2", number=1)).claimed == 0
    assert len(trays.uuids) == 10


@pytest.mark.unbalanced("stage log ends otherwise")
async def test_a_poll_claims_no_more_trays_than_there_is_room_for(house: House) -> None:
    """BP-32: backpressure: three trays may be under way, those of earlier polls included."""
    await add(house, 50)
    bounded, trays = replace(TRAYS, max_trays=3), Trays()
    assert (await poll(house, trays, "life", process=bounded)).trays == 3
    assert (await poll(house, trays, "life", number=3, process=bounded)).trays == 0
    async with house.db.transaction() as conn:
        assert await claims.open_trays(conn, TENANT, "processing") == 3
        await conn.execute(
            "update process_ops.transactions set claim_id = null, status = 'PROCESSING_COMPLETED' where claim_id = %s",
            (trays.started[0][0].claim_id,),
        )
    assert (await poll(house, trays, "life", number=4, process=bounded)).trays == 1


async def test_of_one_business_key_no_more_are_in_trays_than_the_process_allows(house: House) -> None:
    """BP-32: a limit for each business key, over all polls; those of other keys, and of none, are not held up."""
    for key, count in (("ann", 5), ("bob", 3), (None, 4)):
        await add(house, count, business_key=key)
    bounded, trays = replace(TRAYS, max_per_key=2), Trays()
    assert (await poll(house, trays, "life", process=bounded)).claimed == 2 + 2 + 4
    assert (await poll(house, trays, "life", number=3, process=bounded)).claimed == 0


async def test_two_workers_and_two_processes_emit_each_transaction_once(house: House) -> None:
    """BP-18, BP-11: two Monitors of one status, on two workers of a real engine."""
    await add(house, 60)
    other = replace(TRAYS, name="other")
    slow = {"monitors": [{"monitorClass": "ProcessingMonitor", "pollingInterval": "PT1S", "sleepTime": "PT1S"}]}
    app = App(processes=[TRAYS, other], errors=ErrorPolicy(), monitors=slow)
    second = await connect(house.settings)
    async with house.with_app(app) as there, make_worker(second, there.services(), there.settings):
        client = processes(there)
        await client.start(TENANT, "processing", "ann")
        await client.start(TENANT, "other", "ann")

        async def done() -> bool:
            statuses = "select status from process_ops.transactions where status <> 'PROCESSING_COMPLETED'"
            return not await sql(there, statuses)

        await eventually(done, "all are through", 60)
        for name in ("processing", "other"):
            await polled(there, 1, name)
            await client.stop(TENANT, name, "ann")
            await monitor(there, name).result()
        told = [*await rounds(there, "processing"), *await rounds(there, "other")]
        assert sum(each.claimed for each in told) == 60
        assert await sql(there, RECORDS) == [60]
        history = await monitor(there, "processing").fetch_history()
    await replayer().replay_workflow(history)


async def test_the_tray_of_a_claim_is_a_workflow_of_its_own(house: House) -> None:
    """BP-10: it outlives its Monitor, and has its id from the claim."""
    await add(house)
    async with house.with_app(App(processes=[PROCESSING])) as there:
        await processes(there).start(TENANT, "processing", "ann")
        await polled(there, 1, "processing")
        await monitor(there, "processing").terminate()
        [claim] = await sql(there, "select claim_id from process_ops.transaction_claims")
        await there.client.get_workflow_handle(tray_id(claim)).result()
        assert await sql(there, "select status from process_ops.transactions") == ["PROCESSING_COMPLETED"]
