"""The sweep: rows and Temporal workflows that do not agree are found, told, and mended where that is safe."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from casework.durable import contracts
from casework.durable.activities.sweep import SweepActivity
from casework.durable.client import RunClient
from casework.durable.schedules import SWEEP_EVERY, ensure_sweep, kept_sweep, sweep_id
from casework.durable.starting import start_of
from casework.settings import Settings, TemporalSettings
from casework.store import runs, workflows
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually
from tests.integration.durable.other_builds import Ends
from tests.integration.durable.sweeping import AT_ONCE, LONG_AGO, sweep, sweep_now, temporal

MANY = 520


async def test_a_row_left_pending_is_started(working: House) -> None:
    """DA-8. The API wrote the row and died before it started the workflow: the sweep starts it."""
    old = await working.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    young = await working.accept(APPLICATION)
    report = await sweep(working)
    assert report.started == 1
    await working.reaches(old.run_id, "AWAITING_REVIEW")
    assert (await working.run(young.run_id)).status == "PENDING"


async def test_what_can_never_start_holds_up_nobody(house: House) -> None:
    """DA-8. Hundreds of older rows that the engine can never take are closed with the reason; the one behind starts."""
    async with house.db.transaction() as conn:
        await conn.execute(
            "insert into agent_ops.agent_runs (run_id, temporal_workflow_id, workflow_name, workflow_version, user_id,"
            " actor, request, request_hash, turn_limit, created_at)"
            " select gen_random_uuid(), n, 'loan-underwriting', 99, 'ann', 'ann', '{}', 'h', 5, now() - '1 d'::interval"
            " from generate_series(1, %s) n",
            (MANY,),
        )
    good = await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    report = await sweep_now(house)
    assert (report.started, report.failed, report.seen, report.left) == (1, MANY, MANY + 1, 0)
    async with house.worker():
        await house.reaches(good.run_id, "AWAITING_REVIEW")
    async with house.db.transaction() as conn:
        page = await runs.list_page(conn, TENANT, status="FAILED", limit=1)
    assert "it cannot be started: workflow 'loan-underwriting' has no version 99" in str(page.rows[0].failure)


async def test_what_cannot_start_yet_is_told_and_tried_again(house: House) -> None:
    """DA-8. While the engine takes no starts the row stays PENDING, bears an incident, and starts when it can."""
    row = await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    nowhere = await RunClient.open(Settings(temporal=TemporalSettings(address="127.0.0.1:9")))
    for _ in range(2):
        report = await sweep_now(house, run_client=nowhere)
        assert (report.started, report.failed, report.stuck) == (0, 0, 1)
    found = await house.run(row.run_id)
    assert found.status == "PENDING"
    assert "could not be started yet" in found.incident["reason"]
    assert (await sweep_now(house)).started == 1
    async with house.worker():
        started = await house.reaches(row.run_id, "AWAITING_REVIEW")
    assert started.incident is None
    told = [event.kind.partition(":")[0] for event in await house.events(row.run_id) if "incident" in event.kind]
    assert told == ["incident_raised", "incident_cleared"]


async def test_a_sweep_ends_in_its_time(house: House) -> None:
    """DA-8. What does not fit into the time of a sweep is left for the next one, and counted."""
    for _ in range(5):
        await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    report = await sweep_now(house, replace(AT_ONCE, part_s=-1.0))
    assert (report.started, report.left) == (0, 5)
    assert (await sweep_now(house)).started == 5


async def test_a_list_that_takes_long_is_not_asked_for_often(house: House) -> None:
    """DA-8. Listing takes a tenth of the engine's time at most; rows left PENDING are started by every sweep."""
    sweeper = SweepActivity(house.services(), house.client, house.runs, replace(AT_ONCE, rest=1e9))
    for whole in (True, False):
        await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
        report = await ActivityEnvironment().run(sweeper.sweep_runs)
        assert report.whole is whole
        assert report.started >= 1


@pytest.mark.parametrize("way", ["terminated", "deleted"])
async def test_a_run_closed_from_outside_is_told(working: House, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """DA-8. A workflow ended with the engine's own tools: its open row becomes FAILED, and says by whom and why."""
    run_id = await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    fine = await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    for each in (run_id, fine):
        await working.reaches(each, "AWAITING_REVIEW")
    if way == "terminated":
        await temporal(working, "workflow", "terminate", "--workflow-id", str(run_id), "--reason", "it hung, says Olga")
    else:
        await temporal(working, "workflow", "delete", "--yes", "--workflow-id", str(run_id))
        await eventually(lambda: gone(working, run_id), "the workflow is deleted")
    before = await working.run(run_id)

    async def swept() -> bool:
        return (await sweep(working)).failed == 1

    with caplog.at_level(logging.WARNING, "casework.sweep"):
        await eventually(swept, "the sweep has closed the run")
    after = await working.run(run_id)
    assert (after.status, after.version) == ("FAILED", before.version + 1)
    wanted = ("TERMINATED", "temporal-cli", "it hung, says Olga") if way == "terminated" else ("no longer exists",)
    assert all(part in str(after.failure) for part in wanted), after.failure
    assert (await working.run(fine)).status == "AWAITING_REVIEW"
    [line] = [record.getMessage() for record in caplog.records if "closed as FAILED" in record.getMessage()]
    assert str(run_id) in line
    assert [event.kind for event in await working.events(run_id)].count("run_closed_from_outside") == 1


async def gone(house: House, run_id: UUID) -> bool:
    try:
        await house.client.get_workflow_handle(str(run_id)).describe()
    except RPCError:
        return True
    return False


@pytest.mark.parametrize("way", ["timed out", "cancelled", "failed", "something else"])
async def test_a_workflow_that_ended_without_its_row_is_told(house: House, way: str) -> None:
    """DA-8. However a workflow ended, the open row says it. Here no worker ever wrote it."""
    row = await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    async with house.db.transaction() as conn:
        bundle = await workflows.get(conn, TENANT, row.workflow_name, row.workflow_version) or {}
    handle = await house.client.start_workflow(
        contracts.RUN_WORKFLOW,
        start_of(row, bundle),
        id=str(row.run_id),
        task_queue=house.settings.temporal.task_queue,
        execution_timeout=timedelta(seconds=1) if way == "timed out" else None,
    )
    if way == "cancelled":
        await handle.cancel()
    if way == "something else":
        await handle.terminate("a\x00b\U0001f600" + "x" * 5000)
    if way in {"cancelled", "failed"}:
        await end_elsewhere(house, handle)

    async def closed() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(closed, "the workflow is closed")

    async def swept() -> bool:
        return (await sweep_now(house)).failed == 1

    await eventually(swept, "the sweep has closed the row")
    after = await house.run(row.run_id)
    wanted = {
        "timed out": "ran into a time limit of the engine",
        "cancelled": "was cancelled in the engine",
        "failed": "the run is FAILED: by itself",
        "something else": "TERMINATED",
    }
    assert after.status == "FAILED"
    assert wanted[way] in str(after.failure)


async def end_elsewhere(house: House, handle: WorkflowHandle[Any, Any]) -> None:
    """A worker whose runs end at once and write nothing."""
    queue = house.settings.temporal.task_queue
    async with Worker(house.client, task_queue=queue, workflows=[Ends], workflow_runner=UnsandboxedWorkflowRunner()):

        async def ended() -> bool:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

        await eventually(ended, "the run has ended")


async def test_sweeps_side_by_side_do_no_harm(working: House) -> None:
    """DA-8. Several sweeps at the same moment: each run is started once, closed once and told once."""
    left = [await working.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO) for _ in range(4)]
    ended = [await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO) for _ in range(4)]
    for run_id in ended:
        await working.reaches(run_id, "AWAITING_REVIEW")
        await working.client.get_workflow_handle(str(run_id)).terminate("enough")
    reports = await asyncio.gather(*(sweep_now(working, replace(AT_ONCE, questions=0)) for _ in range(3)))
    assert sum(report.failed for report in reports) == 4
    for row in left:
        await working.reaches(row.run_id, "AWAITING_REVIEW")
        kinds = [event.kind for event in await working.events(row.run_id)]
        assert kinds.count("agent.run_started") == 1
    for run_id in ended:
        kinds = [event.kind for event in await working.events(run_id)]
        assert kinds.count("run_closed_from_outside") == 1


async def test_a_run_on_a_queue_that_nobody_serves_is_an_incident(house: House) -> None:
    """DA-8. DA-19. The task queue was renamed: runs on the old one are told of, and not once it has a worker again."""
    run_id = await house.start(APPLICATION)
    other = replace(
        house, settings=replace(house.settings, temporal=replace(house.settings.temporal, task_queue="other"))
    )
    assert (await sweep_now(other)).incidents == 1
    row = await house.run(run_id)
    assert row.status == "PENDING"
    assert f"CASEWORK_TASK_QUEUE={house.settings.temporal.task_queue}" in row.incident["reason"]
    async with house.worker():
        assert (await house.reaches(run_id, "AWAITING_REVIEW")).incident is None
        assert (await sweep_now(other)).incidents == 0


async def test_the_sweep_is_scheduled_once(house: House) -> None:
    """DA-8. Any number of workers ask for the schedule; there is one."""
    queue = house.settings.temporal.task_queue
    await asyncio.gather(*(ensure_sweep(house.client, queue) for _ in range(3)))
    handle = house.client.get_schedule_handle(sweep_id(queue))
    found = await handle.describe()
    assert found.schedule.spec.intervals[0].every == timedelta(seconds=30)
    await handle.delete()


async def test_a_schedule_of_another_release_is_brought_up_to_date(house: House) -> None:
    """DA-8. What another release scheduled differently becomes what this one wants; that it is paused stays."""
    queue = house.settings.temporal.task_queue
    old = Schedule(
        action=ScheduleActionStartWorkflow(contracts.SWEEP_WORKFLOW, id=sweep_id(queue), task_queue="another"),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(hours=1))]),
        state=ScheduleState(paused=True, note="while we look"),
    )
    handle = await house.client.create_schedule(sweep_id(queue), old)
    await ensure_sweep(house.client, queue)
    found = (await handle.describe()).schedule
    assert found.spec.intervals[0].every == SWEEP_EVERY
    assert isinstance(found.action, ScheduleActionStartWorkflow)
    assert found.action.task_queue == queue
    assert (found.state.paused, found.state.note) == (True, "while we look")
    await handle.delete()


async def test_a_deleted_schedule_comes_back(house: House) -> None:
    """DA-8. Somebody deletes the schedule while workers work: they see to it again."""
    queue = house.settings.temporal.task_queue
    handle = house.client.get_schedule_handle(sweep_id(queue))

    async def there() -> bool:
        try:
            await handle.describe()
        except RPCError:
            return False
        return True

    async with kept_sweep(house.client, queue, every_s=0.2):
        assert await there()
        await handle.delete()
        await eventually(there, "the schedule is there again")
    await handle.delete()
