"""Transactions that nobody works on any more are found by the sweep, and become HAS_ERROR with that reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from casework.app import App
from casework.durable.activities.orphans import OrphanAges, OrphanSweep
from casework.durable.trays import start_tray, tray_id, tray_start
from casework.process import PROCESSING, Transaction
from casework.store.processes import claims, task_errors, transactions
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.post import add

AT_ONCE = OrphanAges(closed=timedelta(0), absent=timedelta(0), missed=timedelta(0), many_gone=2)
APP = App(processes=[PROCESSING])


async def claimed(house: House, count: int = 1) -> tuple[UUID, list[Transaction]]:
    """Transactions with a claim, whose tray nobody has started."""
    await add(house, count)
    claim = uuid4()
    async with house.db.transaction() as conn:
        found = await claims.claim(
            conn,
            TENANT,
            status="INTAKE_COMPLETED",
            into="PROCESSING_IN_PROGRESS",
            claim_id=claim,
            most=count,
            process="processing",
            by="ProcessingMonitor",
            at=datetime.now(UTC),
        )
    assert len(found) == count
    return claim, found


async def started(house: House, tray: Sequence[Transaction]) -> Any:
    """Its tray, which waits for a worker that never comes."""
    start = tray_start(APP.lines()["processing"], tray)
    assert await start_tray(house.client, start, house.settings.temporal.task_queue)
    return house.client.get_workflow_handle(tray_id(start.claim_id))


def sweep(house: House, ages: OrphanAges = AT_ONCE) -> OrphanSweep:
    house.app = APP
    return OrphanSweep(house.services(), house.client, ages)


async def now(house: House, uuid: UUID) -> Transaction:
    async with house.db.transaction() as conn:
        found = await transactions.get(conn, TENANT, uuid)
    assert found is not None
    return found


async def test_a_transaction_whose_tray_is_closed_gets_an_error(house: House) -> None:
    """BP-28: a closed tray that did not let go of it; an open one is left alone."""
    _, closed = await claimed(house, 2)
    _, well = await claimed(house)
    handle = await started(house, closed)
    waiting = await started(house, well)
    await handle.terminate("by hand")
    assert await sweep(house).sweep(None) == 2
    for each in closed:
        found = await now(house, each.uuid)
        assert (found.status, found.status_before_error, found.claim_id) == (
            "HAS_ERROR",
            "PROCESSING_IN_PROGRESS",
            None,
        )
        async with house.db.transaction() as conn:
            [error] = await task_errors.of(conn, TENANT, each.uuid)
        assert (error.code, error.process) == ("ORPHANED", "processing")
        assert "its tray was closed (TERMINATED" in error.full
    assert (await now(house, well[0].uuid)).status == "PROCESSING_IN_PROGRESS"
    assert await sweep(house).sweep(None) == 0
    await waiting.terminate()


async def test_a_transaction_whose_tray_does_not_exist_gets_an_error_after_a_while(house: House) -> None:
    """BP-28: but not while a repeated poll may still start it."""
    _, [lost] = await claimed(house)
    assert await sweep(house, OrphanAges(closed=timedelta(0))).sweep(None) == 0
    assert await sweep(house).sweep(None) == 1
    assert (await now(house, lost.uuid)).status == "HAS_ERROR"


async def test_a_tray_that_starts_late_is_no_orphan(house: House) -> None:
    """BP-28: the engine was away for long, and the poll that starts the tray comes behind the first sweep."""
    _, tray = await claimed(house)
    looking = sweep(house, OrphanAges(closed=timedelta(0), absent=timedelta(0)))
    assert await looking.sweep(None) == 0
    handle = await started(house, tray)
    assert await looking.sweep(None) == 0
    assert (await now(house, tray[0].uuid)).status == "PROCESSING_IN_PROGRESS"
    await handle.terminate()


async def test_nothing_is_done_where_most_trays_are_gone_at_once(house: House) -> None:
    """The engine may have lost its data: a person says whether they are gone for good, and then they get an error."""
    lost = [(await claimed(house))[1][0] for _ in range(3)]
    assert await sweep(house).sweep(None) == 0
    assert await sweep(house).sweep(datetime.now(UTC) + timedelta(seconds=1)) == 3
    assert {(await now(house, each.uuid)).status for each in lost} == {"HAS_ERROR"}


async def test_claims_are_looked_at_page_by_page(house: House) -> None:
    for _ in range(3):
        await claimed(house)
    looking = sweep(house, OrphanAges(closed=timedelta(0), absent=timedelta(0), missed=timedelta(0), page=2))
    assert [await looking.sweep(None) for _ in range(3)] == [2, 1, 0]


async def test_the_sweep_of_runs_counts_orphans(house: House) -> None:
    """BP-28: it is a part of the sweep that every worker keeps scheduled."""
    _, closed = await claimed(house)
    handle = await started(house, closed)
    await handle.terminate()
    async with house.db.transaction() as conn:
        await conn.execute("update process_ops.transactions set updated_at = now() - interval '2 minutes'")
    async with house.with_app(APP) as there:
        report = await there.client.execute_workflow(
            "casework.sweep", id=f"sweep-{uuid4()}", task_queue=there.settings.temporal.task_queue
        )
    assert report["orphans"] == 1
