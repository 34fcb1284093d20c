"""Waiting for a person costs nothing and outlives everything."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.testing import WorkflowEnvironment

from casework.durable.contracts import Decision
from casework.settings import Settings, TemporalSettings
from casework.store.database import Database
from tests.integration.durable.conftest import APPLICATION, House


async def test_a_run_that_waits_holds_no_worker_and_no_connection(working: House) -> None:
    """DA-3. While a person is awaited there is no activity, no workflow task and no open database transaction."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    request = DescribeWorkflowExecutionRequest(namespace="default")
    request.execution.workflow_id = str(run_id)

    found = await working.client.workflow_service.describe_workflow_execution(request)
    assert not found.pending_activities
    async with working.db.transaction() as conn:
        cursor = await conn.execute(
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid() and state <> 'idle'"
        )
        assert await cursor.fetchone() == (0,)


async def test_everything_stopped_while_waiting_started_elsewhere_and_approved(house: House) -> None:
    """DA-38, DA-16. Another worker, which has never seen the run, takes the decision that came meanwhile."""
    async with house.worker():
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    calls = {step.path: step.attempt for step in await house.steps(run_id)}
    await house.decide(run_id, "approve")  # a signal needs no worker
    async with await Database.open(house.dsn) as elsewhere:
        other = House(house.dsn, elsewhere, house.client, house.settings)
        async with other.worker():
            row = await other.reaches(run_id, "COMPLETED")
        assert row.outcome == "approved"
        after = {step.path: step.attempt for step in await other.steps(run_id) if step.kind != "decision"}
        assert after == calls


async def test_thirty_days_pass(database_dsn: str, time_skipping_env: WorkflowEnvironment) -> None:
    """DA-38. A wait of thirty days, by skipping time, with the real PostgreSQL; then more information, thirty more."""
    address = time_skipping_env.client.service_client.config.target_host
    settings = Settings(temporal=TemporalSettings(address=address, task_queue=f"test-{uuid4().hex}"))
    async with await Database.open(database_dsn) as db:
        house = House(database_dsn, db, time_skipping_env.client, settings)
        await house.open()
        async with house.worker():
            run_id = await house.start(APPLICATION)
            for turn, command in ((1, "more_info"), (2, "approve")):
                await house.reaches(run_id, "AWAITING_REVIEW", turn=turn)
                before = await time_skipping_env.get_current_time()
                await time_skipping_env.sleep(timedelta(days=30))
                assert await time_skipping_env.get_current_time() - before >= timedelta(days=30)
                review = await house.review(run_id)
                made = Decision(str(review.review_id), str(uuid4()), command, "after a month", "rita")
                await house.runs.decide(str(run_id), made)
            row = await house.reaches(run_id, "COMPLETED")
            assert row.outcome == "approved"
            assert row.ended_at is not None
            assert row.started_at is not None
            assert row.ended_at - row.started_at >= timedelta(days=60)
