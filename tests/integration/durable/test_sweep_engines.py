"""The sweep beside another engine, another task queue, and an engine that has lost most of what it had."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from casework.durable.activities.engine_side import GONE
from casework.durable.client import RunClient
from casework.durable.contracts import Standing
from casework.durable.engines import engine_of, own_engine, require_own
from casework.errors import SettingsError, UnreachableError
from casework.settings import TemporalSettings
from casework.store import engines, incidents, runs
from casework.store.database import Database
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually
from tests.integration.durable.sweeping import AT_ONCE, LONG_AGO, own_namespace, sweep_now, temporal


@pytest.fixture
async def elsewhere(working: House) -> House:
    """The same house, with a client of another namespace."""
    return replace(working, client=await own_namespace(working))


async def accept(house: House) -> None:
    """What `casework engine accept` does."""
    async with await Database.open(house.dsn, role=None) as owner, owner.transaction() as conn:
        await engines.accept(conn, await engine_of(house.client))


def of_queue(house: House, queue: str) -> House:
    temporal = TemporalSettings(address=house.settings.temporal.address, task_queue=queue)
    return replace(house, settings=replace(house.settings, temporal=temporal))


async def is_open(house: House, run_id: UUID) -> bool:
    found = await house.client.get_workflow_handle(str(run_id)).describe()
    return found.status is WorkflowExecutionStatus.RUNNING


async def test_another_namespace_touches_nothing(
    working: House, elsewhere: House, caplog: pytest.LogCaptureFixture
) -> None:
    """DA-8. A worker that is pointed at another engine knows none of the runs, and that proves nothing about them."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    pending = await working.accept(APPLICATION)
    await sweep_now(working, replace(AT_ONCE, pending=LONG_AGO))
    with caplog.at_level(logging.ERROR, "casework.sweep"):
        report = await sweep_now(elsewhere)
    assert (report.seen, report.started, report.failed, report.whole) == (0, 0, 0, False)
    [line] = [record.getMessage() for record in caplog.records if record.name == "casework.sweep"]
    for client in (working.client, elsewhere.client):
        assert repr(client.namespace) in line
        assert repr(client.namespace) in str(report.refused)
    assert "casework engine accept" in line
    assert (await working.run(run_id)).status == "AWAITING_REVIEW"
    assert (await working.run(pending.run_id)).status == "PENDING"
    assert await is_open(working, run_id)


async def test_a_worker_of_another_namespace_does_not_start(working: House, elsewhere: House) -> None:
    """DA-8. The first worker keeps its engine; one of another is refused, and told what to set or to say."""
    await require_own(working.db, working.client)
    with pytest.raises(SettingsError, match=r"TEMPORAL_NAMESPACE and TEMPORAL_ADDRESS.*casework engine accept"):
        await require_own(elsewhere.db, elsewhere.client)
    await require_own(working.db, working.client)


async def test_the_runtime_keeps_the_first_engine_and_changes_none(working: House) -> None:
    """DA-8. What an engine is may be written once by any worker; to change it takes the owner."""
    kept, wrong = await own_engine(working.db, working.client)
    assert wrong is None
    async with working.db.transaction() as conn:
        assert await engines.keep_first(conn, replace(kept, namespace_id="another")) == kept
    with pytest.raises(Exception, match=r"permission denied|lacks"):
        async with working.db.transaction() as conn:
            await engines.accept(conn, kept)


async def test_a_deliberate_move_is_accepted(working: House, elsewhere: House) -> None:
    """DA-8. Once the owner accepts the new engine, what it does not have is closed and what is PENDING starts there."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    await sweep_now(working)
    await accept(elsewhere)
    pending = await working.accept(APPLICATION)
    report = await sweep_now(elsewhere)
    assert (report.started, report.failed, report.refused) == (1, 1, None)
    assert str((await working.run(run_id)).failure).startswith(GONE)
    assert await is_open(elsewhere, pending.run_id)
    assert (await sweep_now(working)).refused is not None


async def test_a_run_that_was_closed_as_gone_is_told_and_not_stopped(
    working: House, caplog: pytest.LogCaptureFixture
) -> None:
    """DA-8. Its row cannot be opened again, but it may be healthy: a person decides what becomes of it."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    async with working.db.transaction() as conn:
        await runs.close_from_outside(conn, TENANT, run_id, GONE)

    async def told() -> bool:
        return (await sweep_now(working)).orphaned == 1

    with caplog.at_level(logging.WARNING, "casework.sweep"):
        await eventually(told, "the sweep has told of it")
    assert str(run_id) in caplog.text
    assert (await sweep_now(working)).stopped == 0
    assert await is_open(working, run_id)
    await working.client.get_workflow_handle(str(run_id)).terminate("the test is over")


async def test_most_runs_gone_at_once_are_held_until_somebody_agrees(house: House) -> None:
    """DA-8. An engine that has lost most of its runs: nothing is closed before the owner says that they are gone."""
    rows = [await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO) for _ in range(4)]
    async with house.db.transaction() as conn:
        await conn.execute("update agent_ops.agent_runs set status = 'RUNNING', version = version + 1")
    few = replace(AT_ONCE, many_gone=3)
    for _ in range(2):
        report = await sweep_now(house, few)
        assert (report.failed, report.incidents) == (0, 4)
    found = await house.run(rows[0].run_id)
    assert found.status == "RUNNING"
    assert "casework engine accept" in found.incident["reason"]
    await accept(house)
    assert (await sweep_now(house, few)).failed == 4
    ended = await house.run(rows[0].run_id)
    assert (ended.status, ended.incident) == ("FAILED", None)


async def test_few_runs_gone_are_closed(working: House) -> None:
    """DA-8. Runs that somebody deleted one by one are closed at once; so are many that are few of all."""
    lost = await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    kept = [await working.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO) for _ in range(2)]
    for each in (lost, *kept):
        await working.reaches(each, "AWAITING_REVIEW")
    await temporal(working, "workflow", "delete", "--yes", "--workflow-id", str(lost))

    async def closed() -> bool:
        return (await sweep_now(working, replace(AT_ONCE, many_gone=0))).failed == 1

    await eventually(closed, "the deleted run is closed")
    for each in kept:
        assert (await working.run(each)).status == "AWAITING_REVIEW"


async def test_a_row_is_started_by_the_sweep_of_its_queue(house: House) -> None:
    """DA-8. Two releases on one database, each with its queue: each starts its own rows, and those that name none."""
    own, other = house.settings.temporal.task_queue, f"other-{uuid4().hex}"
    named = await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO, task_queue=own)
    unnamed = await house.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO)
    assert (await sweep_now(of_queue(house, other), replace(AT_ONCE, stuck=2 * LONG_AGO))).started == 1
    assert (await house.run(named.run_id)).incident is None
    assert (await sweep_now(house)).started == 1
    for row, queue in ((named, own), (unnamed, other)):
        found = await house.client.get_workflow_handle(str(row.run_id)).describe()
        assert found.task_queue == queue
        await house.client.get_workflow_handle(str(row.run_id)).terminate("the test is over")


async def test_a_row_of_a_queue_that_nobody_serves_is_an_incident(working: House) -> None:
    """DA-8. DA-32. A row whose queue has no worker stays PENDING and says which worker it lacks."""
    queue = f"nobody-{uuid4().hex}"
    row = await working.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO, task_queue=queue)
    report = await sweep_now(working)
    assert (report.started, report.stuck) == (0, 1)
    found = await working.run(row.run_id)
    assert (found.status, found.incident["kind"]) == ("PENDING", "start")
    assert f"CASEWORK_TASK_QUEUE={queue}" in found.incident["reason"]
    async with of_queue(working, queue).worker():
        assert (await sweep_now(of_queue(working, queue))).started == 1
        assert (await working.reaches(row.run_id, "AWAITING_REVIEW")).incident is None


async def test_a_run_that_moves_while_it_is_compared_is_no_incident(working: House) -> None:
    """DA-8. A decision lands between the run's answer and the read of its row: the run is asked once more."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")

    class Overtaken(RunClient):
        """Its first answer is old when it arrives."""

        overtaken = False

        async def standing(self, run_id: str) -> Standing | None:
            found = await super().standing(run_id)
            if not self.overtaken:
                self.overtaken = True
                await working.decide(UUID(run_id), "more_info", "why")
                await working.reaches(UUID(run_id), "AWAITING_REVIEW", turn=2)
            return found

    client = Overtaken(working.client, working.settings.temporal.task_queue)
    await sweep_now(working, run_client=client)
    assert client.overtaken
    assert (await working.run(run_id)).incident is None


async def test_an_incident_of_rows_that_agree_is_taken_down(working: House) -> None:
    """DA-8. DA-32. A flag that says that row and run do not agree goes when they do."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    async with working.db.transaction() as conn:
        await incidents.raise_incident(conn, TENANT, run_id, "rows", "it was wrong once")

    async def cleared() -> bool:
        await sweep_now(working)
        return (await working.run(run_id)).incident is None

    await eventually(cleared, "the flag is down")


@pytest.mark.parametrize(("namespace", "says"), [("default", "does not say"), ("nowhere", "no namespace")])
async def test_an_engine_that_does_not_say_who_it_is_is_told(house: House, namespace: str, says: str) -> None:
    """Neither silence nor a namespace that is not there is taken for another engine."""
    address = house.settings.temporal.address if namespace == "nowhere" else "127.0.0.1:9"
    assert address is not None
    client = await Client.connect(address, namespace=namespace, lazy=True)
    with pytest.raises(UnreachableError, match=says):
        await engine_of(client)
