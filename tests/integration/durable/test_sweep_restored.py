"""A database or an engine that was set back to an earlier time: the sweep finds what does not agree any more."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import WorkflowExecutionStatus

from casework.agents import tool
from casework.durable import contracts
from casework.durable.publish import publish
from casework.store import runs
from casework.values import content_hash
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually
from tests.integration.durable.sweeping import Backup, sweep_now


async def test_a_restored_database_is_brought_up_to_date(house: House, tmp_path: Path) -> None:
    """DA-8. The database is set back: runs that ended, asked, asked again or began since are each found and told.

    What has ended meanwhile is FAILED and says how it ended; what is open writes its rows again, and can be decided.
    """
    acting, go_on = threading.Event(), threading.Event()

    @tool(effects=False)
    async def look() -> str:
        """Look."""
        acting.set()
        await asyncio.to_thread(go_on.wait, 60)
        return "found"

    app = errand(tmp_path, [look], asking([("look", {})]))
    async with house.with_app(app) as busy:
        go_on.set()
        decided, asked_again = [await busy.start({}, "errand") for _ in range(2)]
        for run_id in (decided, asked_again):
            await busy.reaches(run_id, "AWAITING_REVIEW")
        go_on.clear()
        acting.clear()
        moving = await busy.start({}, "errand")
        assert await asyncio.to_thread(acting.wait, 30)

        backup = await Backup.of(busy)

        go_on.set()
        await busy.reaches(moving, "AWAITING_REVIEW")
        late = await busy.start({}, "errand")
        await busy.reaches(late, "AWAITING_REVIEW")
        await busy.decide(decided, "approve")
        await busy.reaches(decided, "COMPLETED")
        await busy.decide(asked_again, "more_info", "why?")
        await busy.reaches(asked_again, "AWAITING_REVIEW", turn=2)
    async with backup.restored() as earlier, earlier.with_app(app) as now:
        assert (await now.run(moving)).status == "RUNNING"
        report = await sweep_now(now)
        assert (report.failed, report.behind, report.restored, report.unknown) == (1, 2, 1, 0)
        ended = await now.run(decided)
        assert ended.status == "FAILED"
        assert "the run is COMPLETED with outcome approved" in str(ended.failure)
        assert "set back to an earlier time" in str(ended.failure)
        await now.reaches(asked_again, "AWAITING_REVIEW", turn=2)
        for run_id in (moving, late, asked_again):
            await now.reaches(run_id, "AWAITING_REVIEW")
            assert (await now.run(run_id)).incident is None
            assert "agent.run_told_again" in {event.kind.partition(":")[0] for event in await now.events(run_id)}
            await now.decide(run_id, "approve")
            assert (await now.reaches(run_id, "COMPLETED")).outcome == "approved"
        kinds = {event.kind.partition(":")[0] for event in await now.events(moving)}
        assert kinds >= {"incident_raised", "incident_cleared"}
        assert "run_restored" in {event.kind for event in await now.events(late)}
        assert (await now.run(late)).request_hash == content_hash({})
        assert (await sweep_now(now)).behind == 0


@pytest.mark.parametrize("version", ["absent", "another"])
async def test_a_run_that_may_not_be_shown_again_is_told(house: House, tmp_path: Path, version: str) -> None:
    """DA-8. No row, and its workflow is not there under its version: no row is made up; log and report tell of it."""
    backup = await Backup.of(house)
    async with house.with_app(errand(tmp_path, [], asking())) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
    by_hand = f"by-hand-{uuid4()}"
    queue = house.settings.temporal.task_queue
    await house.client.start_workflow(contracts.RUN_WORKFLOW, "nothing", id=by_hand, task_queue=queue)
    async with backup.restored() as earlier:
        if version == "another":
            await publish(errand(tmp_path, [], asking(), exchanges=7), earlier.db)

        async def both() -> bool:
            report = await sweep_now(earlier)
            assert report.restored == 0
            return report.unknown == 2

        await eventually(both, "both are told")
        async with earlier.db.transaction() as conn:
            assert await runs.get(conn, TENANT, run_id) is None
    for each in (by_hand, str(run_id)):
        await house.client.get_workflow_handle(each).terminate("the test is over")


async def test_a_run_whose_row_has_ended_is_stopped(working: House) -> None:
    """DA-8. The engine was set back, or a row was closed too early: ended rows stay, so the run is asked to stop."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    async with working.db.transaction() as conn:
        await runs.close_from_outside(conn, TENANT, run_id, "closed by hand")

    async def stopped() -> bool:
        await sweep_now(working)
        found = await working.client.get_workflow_handle(str(run_id)).describe()
        return found.status is not WorkflowExecutionStatus.RUNNING

    await eventually(stopped, "the run has stopped")
    row = await working.run(run_id)
    assert (row.status, row.failure) == ("FAILED", "closed by hand")


async def test_a_row_that_is_newer_than_its_run_is_an_incident(working: House) -> None:
    """DA-8. DA-19. The engine was set back: what is decided in the rows, the run does not know; an incident says so."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    async with working.db.transaction() as conn:
        await conn.execute("update agent_ops.agent_runs set version = version + 5 where run_id = %s", (run_id,))
    for _ in range(2):
        assert (await sweep_now(working)).behind == 0
    row = await working.run(run_id)
    assert row.status == "AWAITING_REVIEW"
    assert "newer than the run itself" in row.incident["reason"]


@pytest.mark.parametrize("arguments", [(), (None,), ("x", 2, [3])])
async def test_a_run_may_be_asked_at_any_time(working: House, arguments: tuple[object, ...]) -> None:
    """DA-8. Asked to write its rows again, once or often: the rows are the same, with a higher version."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    before = await working.run(run_id)
    handle = working.client.get_workflow_handle(str(run_id))
    for _ in range(3):
        await handle.signal(contracts.TELL_AGAIN_SIGNAL, args=arguments)

    async def told() -> bool:
        return (await working.run(run_id)).version == before.version + 3

    await eventually(told, "the row was written three times")
    await working.decide(run_id, "approve")
    assert (await working.reaches(run_id, "COMPLETED")).outcome == "approved"
    history = await handle.fetch_history()
    assert not any(event.HasField("workflow_task_failed_event_attributes") for event in history.events)
