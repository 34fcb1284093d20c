"""Trays beside others: another hand on a Transaction, another release of the application, a database that is away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.task_runs import TaskRunActivities
from casework.durable.activities.tray import TrayActivities
from casework.durable.process_contracts import TrayWork
from casework.process import Change, ErrorPolicy, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.tasks import Task
from casework.settings import Settings, TemporalSettings
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.store.migrate import migrate
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.test_tray import noting
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import Ask, plain, process

DONE = "PROCESSING_COMPLETED"


class Held:
    """A task that waits inside for whoever tests it."""

    def __init__(self, *, database: bool = False) -> None:
        self.inside, self.go = asyncio.Event(), asyncio.Event()
        self.calls: list[UUID] = []
        held = self

        class Waits(TransactionalTask if database else PlainTask):  # type: ignore[misc]  # one of two kinds
            async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
                held.calls.append(transaction.uuid)
                if transaction.data.get("held"):
                    held.inside.set()
                    await held.go.wait()
                return Change(data={"acted": True})

        self.task: type[Task] = (bot_task("held") if database else bot_task("held", repeat="keyed"))(Waits)


async def taken(here: Yard, uuid: UUID, status: str) -> list[object]:
    """What the row is once another hand has set the status; every column of it."""
    (row,) = await here.rows(
        "update process_ops.transactions set status = %s, status_before_error = status, claim_id = %s,"
        " updated_at = now() where uuid = %s returning *",
        status,
        uuid4() if status == "ERROR_IN_PROGRESS" else None,
        uuid,
    )
    return list(row)


async def row_of(here: Yard, uuid: UUID) -> list[object]:
    (row,) = await here.rows("select * from process_ops.transactions where uuid = %s", uuid)
    return list(row)


@pytest.mark.parametrize(
    "status",
    ["HAS_ERROR", pytest.param("ERROR_IN_PROGRESS", marks=pytest.mark.unbalanced("claim is unknown"))],
)
@pytest.mark.unbalanced("stage log ends otherwise", "step is STARTED and its tray is over")
async def test_what_the_error_process_takes_is_not_touched_any_more(house: House, status: str) -> None:
    """BP-24. While a plain task acts on a Transaction another hand takes it: no field of it changes, neither by the
    commit of that task, nor by later ones, the Finalizer and the release; the others come through."""
    held = Held()
    async with yard(house, project(process(held.task, noting("b"), plain("c"), tray_size=3))) as here:
        uuids = [await here.add(), await here.add({"held": True}), await here.add()]
        handle = await here.start(await here.claimed())
        await held.inside.wait()
        before = await taken(here, uuids[1], status)
        held.go.set()
        end = await handle.result()
        assert (end.transactions, end.left) == (3, 1)
        assert await row_of(here, uuids[1]) == before
        assert await here.errors(uuids[1]) == []
        assert [step.path for step in await here.steps(uuids[1])] == ["held.1"]
        assert await here.statuses([uuids[0], uuids[2]]) == [DONE, DONE]


@pytest.mark.unbalanced("stage log ends otherwise")
async def test_what_was_taken_between_two_stations_is_not_seen_by_the_next(house: House) -> None:
    """BP-24. A Transaction that is taken behind a task is neither begun at the next one nor finalized."""
    held = Held()
    async with yard(house, project(process(plain("a"), held.task, noting("b"), tray_size=2))) as here:
        other, waits = await here.add(), await here.add({"held": True})
        handle = await here.start(await here.claimed())
        await held.inside.wait()
        await eventually(lambda: _passed(here, other), "the other has passed the task")
        before = await taken(here, other, "HAS_ERROR")
        held.go.set()
        await handle.result()
        assert await row_of(here, other) == before
        assert [step.path for step in await here.steps(other)] == ["a.1", "held.1"]
        assert await here.statuses([waits]) == [DONE]


async def _passed(here: Yard, uuid: UUID) -> bool:
    return (await here.get(uuid)).data.get("acted") is True


async def test_a_terminal_transaction_leaves_the_line(house: House) -> None:
    """BP-3, BP-4. A task may end a Transaction at once; nothing of it changes behind that."""

    @bot_task("finish")
    class End(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(status="COMPLETED")

    line = process(End, noting("b"), finalizer=None)
    async with yard(house, project(line)) as here:
        uuid = await here.add({"n": 1}, status="PROCESSING_COMPLETED")
        start = await here.claimed_as("PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS")
        end = await (await here.start(start)).result()
        made = await here.get(uuid)
        assert (made.status, made.claim_id, made.data) == ("COMPLETED", None, {"n": 1})
        assert end.left == 1


async def test_a_task_that_the_application_has_no_more_fails_its_transactions(house: House) -> None:
    """BP-10. The tray was claimed by a release with a task that this one has not: its Transactions say so, and the tray
    ends. So it is with a process that is gone, whatever the policy."""
    before = process(plain("a"), noting("b"), tray_size=2)
    after = process(plain("a"), noting("c"), tray_size=2)
    async with yard(house, project(before), works=False) as here:
        uuids = [await here.add(), await here.add()]
        start = await here.claimed()
    async with yard(house, project(after, errors=ErrorPolicy(retries=3))) as here:
        assert (await (await here.start(start)).result()).left == 2
        for uuid in uuids:
            (error,) = await here.errors(uuid)
            assert "has no task 'b' any more" in error.full
            assert (error.task, (await here.get(uuid)).status) == ("b", "HAS_ERROR")
    async with yard(house, project(before), works=False) as here:
        lone = await here.add()
        start = await here.claimed()
    async with yard(house, project(process(plain("a"), name="other"))) as here:
        await (await here.start(start)).result()
        (error,) = await here.errors(lone)
        assert "no process 'processing'" in error.full.lower()


async def test_a_tray_goes_on_after_the_database_was_away(
    tmp_path: Path, temporal_client: Client, temporal_address: str
) -> None:
    """BP-10, DA-18. The database stops while one task acts and another is in its database transaction: nothing is
    lost, nothing counts twice, and no Transaction fails by it."""
    server, held = LocalPostgres(tmp_path / "data"), Held()
    inside = Held(database=True)
    inside.task = bot_task("inside")(inside.task)
    dsn = server.start()
    try:
        await migrate(dsn)
        temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
        async with await Database.open(dsn, wait_s=1) as db:
            house = House(dsn, db, temporal_client, Settings(temporal=temporal))
            async with yard(house, project(process(held.task, inside.task, tray_size=2))) as here:
                uuids = [await here.add({"held": True}), await here.add()]
                handle = await here.start(await here.claimed())
                for each in (held, inside):
                    await each.inside.wait()
                    await asyncio.to_thread(server.stop)
                    each.go.set()
                    await asyncio.to_thread(server.start)
                assert (await handle.result()).left == 0
                assert await here.statuses(uuids) == [DONE, DONE]
                assert len(held.calls) == 2
                assert len(inside.calls) > 2
                for uuid in uuids:
                    assert await here.errors(uuid) == []
    finally:
        server.stop()


@pytest.mark.parametrize(("before", "now"), [(plain("ask"), Ask), (Ask, plain("ask"))])
async def test_a_task_that_has_become_another_kind_fails_what_is_under_way(house: House, before: Any, now: Any) -> None:
    """BP-8, BP-23. A release has made a task that waits of one that works at once, or the other way: the tray was begun
    for what it was, so its Transactions fail, and are told why."""
    async with yard(house, project(process(before)), works=False) as here:
        uuid = await here.add()
        start = await here.claimed()
        services = replace(house, app=project(process(now))).services()
        work = TrayWork(start.tenant, start.process, start.claim_id, "ask", 1, 1, start.standing)
        call = TaskRunActivities(services).begin_task_run if before is Ask else TrayActivities(services).work_tray
        await ActivityEnvironment().run(call, work)
        (error,) = await here.errors(uuid)
        kind = "plain" if before is Ask else "manual"
        assert f"Task 'ask' of process 'processing' is of kind {kind} now. The tray was begun by another" in error.full
        assert await here.statuses([uuid]) == ["HAS_ERROR"]
