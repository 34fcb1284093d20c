"""The sweep: rows and Temporal workflows that do not agree are found, and told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from casework.durable import contracts
from casework.durable.contracts import SweepReport
from casework.durable.schedules import SWEEP_ID, ensure_sweep
from tests.integration.durable.conftest import APPLICATION, House, eventually

LONG_AGO = timedelta(minutes=10)


async def sweep(house: House) -> SweepReport:
    report: SweepReport = await house.client.execute_workflow(
        contracts.SWEEP_WORKFLOW,
        id=f"sweep-{uuid4()}",
        task_queue=house.settings.temporal.task_queue,
        result_type=SweepReport,
    )
    return report


async def test_a_row_left_pending_is_started(working: House) -> None:
    """DA-8. The API wrote the row and died before it started the workflow: the sweep starts it."""
    old = await working.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    young = await working.accept(APPLICATION)
    report = await sweep(working)
    assert report.started == 1
    await working.reaches(old.run_id, "AWAITING_REVIEW")
    assert (await working.run(young.run_id)).status == "PENDING"


@pytest.mark.parametrize("way", ["terminated", "deleted"])
async def test_a_run_closed_from_outside_is_told(working: House, way: str) -> None:
    """DA-8. A workflow terminated or deleted in the engine's interface: its open row becomes FAILED, and says why."""
    run_id = await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    fine = await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    for each in (run_id, fine):
        await working.reaches(each, "AWAITING_REVIEW")
    handle = working.client.get_workflow_handle(str(run_id))
    await handle.terminate("an operator did it")
    if way == "deleted":
        await _delete(working, str(run_id))
    before = await working.run(run_id)

    async def swept() -> bool:
        return (await sweep(working)).failed == 1

    await eventually(swept, "the sweep has closed the run")
    after = await working.run(run_id)
    assert after.status == "FAILED"
    assert ("TERMINATED" if way == "terminated" else "no longer exists") in str(after.failure)
    assert after.version == before.version + 1
    assert (await working.run(fine)).status == "AWAITING_REVIEW"


async def _delete(house: House, run_id: str) -> None:
    from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
    from temporalio.service import RPCError

    request = DeleteWorkflowExecutionRequest(namespace="default")
    request.workflow_execution.workflow_id = run_id
    await house.client.workflow_service.delete_workflow_execution(request)

    async def gone() -> bool:
        try:
            await house.client.get_workflow_handle(run_id).describe()
        except RPCError:
            return True
        return False

    await eventually(gone, "the workflow is deleted")


async def test_the_sweep_is_scheduled_once(house: House) -> None:
    """DA-8. Any number of workers ask for the schedule; there is one."""
    queue = house.settings.temporal.task_queue
    for _ in range(3):
        await ensure_sweep(house.client, queue)
    handle = house.client.get_schedule_handle(f"{SWEEP_ID}-{queue}")
    found = await handle.describe()
    assert found.schedule.spec.intervals[0].every == timedelta(seconds=30)
    await handle.delete()
