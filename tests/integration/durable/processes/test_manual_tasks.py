"""Manual tasks: a Transaction waits for a person, who answers an ordinary review."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

from temporalio.worker import Worker

from casework.durable.contracts import CancelRequest, RunEnd
from casework.durable.manual_tasks import MANUAL_TASK
from casework.store import reviews, workflows
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.desk import Desk, work_on
from tests.integration.durable.processes.waiting_app import BY_PERSON, CALLS, app


async def desk_of(house: House) -> Desk:
    house.app = app(BY_PERSON)
    await house.open()
    CALLS.clear()
    return Desk(house)


async def test_a_person_is_asked_by_an_ordinary_review(house: House) -> None:
    """BP-8: a manual task is a Review, in the inbox of all reviews, with the decisions that the Task named."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "ask")
    start = await desk.begun(work)
    async with house.worker():
        await house.runs.start(start)
        await house.reaches(UUID(start.run_id), "AWAITING_REVIEW")
        async with house.db.transaction() as conn:
            (review,) = (await reviews.waiting(conn, TENANT)).rows
        assert (review.run_id, review.decisions) == (UUID(start.run_id), ["yes", "no"])
        assert review.recommendation == {
            "question": "Pay 5?",
            "transaction": str(claimed.uuid),
            "status": "PROCESSING_IN_PROGRESS",
            "process": "processing",
            "task": "ask",
        }
        await house.decide(review.run_id, "yes", "it is due")
        end = await house.client.get_workflow_handle(start.run_id, result_type=RunEnd).result()
    assert (end.status, end.outcome) == ("COMPLETED", "yes")
    outcome = await desk.end(work, start, end)
    assert (outcome.kind, outcome.to) == ("passed", "")
    now = await desk.get(claimed.uuid)
    assert now.data["paid"] == ["yes", "it is due", "rita"]
    assert not now.straight_through


async def test_a_decision_that_the_task_refuses_fails_the_transaction(house: House) -> None:
    """BP-23: what `decided` raises is the Transaction's error; the person's reason is in the Task's hands."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "ask")
    start = await desk.begun(work)
    async with house.worker():
        carried = asyncio.create_task(desk.carried_out(start))
        await house.reaches(UUID(start.run_id), "AWAITING_REVIEW")
        await house.decide(UUID(start.run_id), "no", "too late")
        end = await carried
    outcome = await desk.end(work, start, end)
    assert (outcome.kind, outcome.status) == ("left", "HAS_ERROR")
    (error,) = await desk.errors(claimed.uuid)
    assert (error.type, error.code) == ("BUSINESS", "REFUSED")
    assert "not to be paid: too late" in error.full


async def test_a_cancelled_question_fails_the_transaction(house: House) -> None:
    """A person who cancels the run takes the question back: the Transaction is HAS_ERROR, by whose word it says."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "ask")
    start = await desk.begun(work)
    async with house.worker():
        carried = asyncio.create_task(desk.carried_out(start))
        await house.reaches(UUID(start.run_id), "AWAITING_REVIEW")
        await house.runs.cancel(start.run_id, CancelRequest("rita", "asked by mistake"))
        end = await carried
    assert end.status == "CANCELLED"
    outcome = await desk.end(work, start, end)
    assert (outcome.kind, outcome.status) == ("left", "HAS_ERROR")
    (error,) = await desk.errors(claimed.uuid)
    assert error.code == "RunCancelledError"
    assert "cancelled by rita: asked by mistake" in error.full


async def test_a_question_that_cannot_be_asked_starts_no_run(house: House) -> None:
    """BP-23: a Task that raises, or thinks longer than its `timeout`, fails its Transaction before anyone is asked."""
    desk = await desk_of(house)
    for number, code, told in ((7, "SEVEN", "nobody can be asked about 7"), (8, "TimeoutError", "0.5 s")):
        claimed = await desk.taken(await desk.add({"n": number}, "INTAKE_COMPLETED"), "processing")
        begun = await desk.begin(work_on(claimed, "ask"))
        assert begun.outcome is not None
        assert (begun.outcome.kind, begun.outcome.status) == ("left", "HAS_ERROR")
        (error,) = await desk.errors(claimed.uuid)
        assert error.code == code
        assert told in error.full
        assert await desk.runs(claimed.uuid) == []


async def test_questions_with_the_same_decisions_share_a_version(house: House) -> None:
    """The built-in workflow has a version for each set of decisions; none of them is offered to be started."""
    desk = await desk_of(house)
    starts = []
    for number in (1, 2):
        claimed = await desk.taken(await desk.add({"n": number}, "INTAKE_COMPLETED"), "processing")
        starts.append(await desk.begun(work_on(claimed, "ask")))
    assert {start.workflow_version for start in starts} == {1}
    async with house.db.transaction() as conn:
        assert MANUAL_TASK not in await workflows.names(conn, TENANT)
        assert await workflows.latest(conn, TENANT, MANUAL_TASK) is None


async def test_nothing_is_held_while_a_person_thinks(house: House) -> None:
    """BP-8. The worker may go, and another one takes the answer: no slot and no process waits for the person."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    start = await desk.begun(work_on(claimed, "ask"))
    first: Worker
    async with house.worker() as first:
        await house.runs.start(start)
        await house.reaches(UUID(start.run_id), "AWAITING_REVIEW")
    assert not first.is_running
    await house.decide(UUID(start.run_id), "yes")
    async with house.worker():
        handle = house.client.get_workflow_handle(start.run_id, result_type=RunEnd)
        end = await handle.result(rpc_timeout=timedelta(seconds=60))
    assert end.outcome == "yes"
