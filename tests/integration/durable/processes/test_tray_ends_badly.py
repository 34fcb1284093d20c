"""Agent and manual tasks whose activities fail each time, and trays that are cancelled in the midst of a station."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import WorkflowFailureError

from casework.durable.activities import task_runs
from casework.durable.activities.orphans import OrphanSweep
from casework.process import (
    PROCESSING,
    Change,
    Decision,
    ErrorEntity,
    PlainTask,
    RunEnd,
    TaskContext,
    Transaction,
    TransactionalTask,
    bot_task,
)
from casework.process.tasks import Task
from casework.store import reviews
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.test_orphans import AT_ONCE
from tests.integration.durable.processes.test_tray_repeats import BrokenPolicy
from tests.integration.durable.processes.trays import project, yard
from tests.integration.durable.processes.waiting_app import Ask, Assess, app
from tests.integration.durable.sweeping import sweep_now
from tests.unit.process.lines import process

GIVEN_UP = ("HAS_ERROR", "PROCESSING_IN_PROGRESS", None)


async def desk_of(house: House, task: type[Task]) -> Desk:
    house.app = app(replace(PROCESSING, tasks=(task,)))
    await house.open()
    return Desk(house)


async def given_up(desk: Desk, uuid: UUID) -> ErrorEntity:
    found = await desk.get(uuid)
    assert (found.status, found.status_before_error, found.claim_id) == GIVEN_UP
    (error,) = await desk.errors(uuid)
    return error


@bot_task("assess", errors=BrokenPolicy())
class NoInput(Assess):
    async def input(self, transaction: Transaction) -> Mapping[str, Any]:
        raise ValueError("odd")


@bot_task("assess", errors=BrokenPolicy())
class NoOutcome(Assess):
    async def outcome(self, transaction: Transaction, end: RunEnd) -> Change | None:
        raise ValueError("odd")


@pytest.mark.parametrize(("task", "runs"), [(NoInput, []), (NoOutcome, ["COMPLETED"])])
async def test_an_agent_task_whose_activity_fails_each_time_is_given_up(
    house: House, task: type[Task], runs: list[str]
) -> None:
    """BP-10. Before its run or behind it: the Transaction fails with the reason, and its tray ends well."""
    desk = await desk_of(house, task)
    uuid = await desk.add({"n": 5})
    async with house.worker():
        end = await (await desk.tray(uuid, "processing")).result()
    assert (end.transactions, end.left) == (1, 1)
    assert "this policy is broken" in (await given_up(desk, uuid)).full
    assert [each.status for each in await desk.runs(uuid)] == runs


@bot_task("ask", errors=BrokenPolicy())
class NoDecision(Ask):
    async def decided(self, transaction: Transaction, decision: Decision) -> Change | None:
        raise ValueError("odd")


async def test_a_manual_task_whose_activity_fails_each_time_is_given_up(house: House) -> None:
    """BP-10. The decision stays in the record, and no question is open."""
    desk = await desk_of(house, NoDecision)
    uuid = await desk.add({"n": 5})
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        asked = await desk.waiting(uuid)
        await house.decide(asked.run_id, "yes", "it is due")
        await tray.result()
    assert "this policy is broken" in (await given_up(desk, uuid)).full
    async with house.db.transaction() as conn:
        (decision,) = await reviews.decisions(conn, TENANT, asked.run_id)
    assert (decision.command, decision.reason) == ("yes", "it is due")


GATE: dict[str, asyncio.Event] = {}


async def _held() -> None:
    GATE["in"].set()
    await GATE["out"].wait()


@bot_task("hold", effects=False)
class Computes(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        await _held()
        return Change(data={"held": True})


@bot_task("hold", repeat="keyed")
class Acts(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        await _held()
        return Change(data={"held": True})


@bot_task("hold")
class Writes(TransactionalTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        await _held()
        return Change(data={"held": True})


@pytest.mark.parametrize("task", [Computes, Acts, Writes])
async def test_a_tray_cancelled_while_a_station_works_leaves_its_transactions_to_the_sweep(
    house: House, task: type[Task]
) -> None:
    """BP-28. The work is stopped, nothing of it is kept, and the Transaction becomes HAS_ERROR: its tray was closed."""
    GATE.update({"in": asyncio.Event(), "out": asyncio.Event()})
    async with yard(house, project(process(task, tray_size=2))) as here:
        uuids = [await here.add(), await here.add()]
        tray = await here.start(await here.claimed())
        await GATE["in"].wait()
        await tray.cancel()
        with pytest.raises(WorkflowFailureError):
            await tray.result()
        assert await here.statuses(uuids) == ["PROCESSING_IN_PROGRESS"] * 2
        assert await OrphanSweep(house.services(), house.client, AT_ONCE).sweep(None) == 2
        for uuid in uuids:
            found = await here.get(uuid)
            assert (found.status, found.claim_id, found.data) == ("HAS_ERROR", None, {})
            (error,) = await here.errors(uuid)
            assert error.code == "ORPHANED"
            assert "its tray was closed (CANCELED" in error.full
        GATE["out"].set()
    for uuid in uuids:
        assert ((await here.get(uuid)).status, len(await here.errors(uuid))) == ("HAS_ERROR", 1)


async def test_a_run_whose_tray_gave_up_before_it_began_is_never_started(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BP-10. The worker is lost each time behind the commit of the run's row: nobody is asked about what has failed."""

    begin = task_runs.RunStation.begin

    async def lost(self: Any, item: Any) -> Any:
        await begin(self, item)
        raise RuntimeError("the worker is lost")

    monkeypatch.setattr(task_runs.RunStation, "begin", lost)
    desk = await desk_of(house, Ask)
    uuid = await desk.add({"n": 5})
    async with house.worker():
        await (await desk.tray(uuid, "processing")).result()
        assert "the worker is lost" in (await given_up(desk, uuid)).full
    (run,) = await desk.runs(uuid)
    assert run.status == "PENDING"
    report = await sweep_now(house)
    assert (report.started, report.failed) == (0, 1)
