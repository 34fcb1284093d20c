"""Trays that wait: for a run, for a person; with failures, cancellations, and workers that are killed on the way."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowFailureError

from casework.durable.contracts import CancelRequest
from casework.process import ErrorPolicy
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.waiting_app import BOTH, BY_AGENT, BY_PERSON, PARTED, app

HELD = 60
"""From 50 on the run of the workflow waits for a signal."""


async def desk_of(house: House, *processes: object, errors: ErrorPolicy | None = None) -> Desk:
    house.app = app(*processes, errors=errors)  # type: ignore[arg-type]
    await house.open()
    return Desk(house)


async def test_a_transaction_goes_through_a_run_and_a_person(house: House) -> None:
    """BP-8: an agent task runs a Workflow and takes its outcome, a manual task asks a person; then the line goes on."""
    desk = await desk_of(house, BOTH)
    uuid = await desk.add({"n": 5}, "INTAKE_COMPLETED")
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        asked = await desk.waiting(uuid)
        assert (await desk.get(uuid)).task == "ask"
        await house.decide(asked.run_id, "yes", "it is due")
        end = await tray.result()
    assert (end.transactions, end.left) == (1, 0)
    made = await desk.get(uuid)
    assert (made.status, made.claim_id, made.straight_through) == ("PROCESSING_COMPLETED", None, False)
    assert (made.data["twice"], made.data["paid"]) == (10, ["yes", "it is due", "rita"])
    runs = await desk.runs(uuid)
    assert [(run.task, run.status) for run in runs] == [("assess", "COMPLETED"), ("ask", "COMPLETED")]
    assert made.data["run"] == str(runs[0].run_id)


async def test_each_further_attempt_is_another_run(house: House) -> None:
    """BP-26: a FAILED run is tried again as often as the policy says, with a run of its own; then it is HAS_ERROR."""
    desk = await desk_of(house, BY_AGENT, errors=ErrorPolicy(retries=2))
    uuid = await desk.add({"n": -1}, "INTAKE_COMPLETED")
    async with house.worker():
        end = await (await desk.tray(uuid, "processing")).result()
    assert (end.transactions, end.left) == (1, 1)
    runs = await desk.runs(uuid)
    assert [run.status for run in runs] == ["FAILED"] * 3
    assert len({run.run_id for run in runs}) == 3
    errors = await desk.errors(uuid)
    assert [(error.code, error.attempt) for error in errors] == [("RunFailedError", attempt) for attempt in (1, 2, 3)]
    assert "-1 is below nothing" in errors[0].full
    assert (await desk.get(uuid)).status == "HAS_ERROR"


async def test_a_run_that_a_person_stops_is_not_tried_again(house: House) -> None:
    """A CANCELLED run makes its Transaction HAS_ERROR at once, whatever the policy's retries; the tray ends well."""
    desk = await desk_of(house, BY_AGENT, errors=ErrorPolicy(retries=2))
    uuid = await desk.add({"n": HELD}, "INTAKE_COMPLETED")
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        run = await desk.waiting(uuid, "RUNNING")
        await house.runs.cancel(str(run.run_id), CancelRequest("rita", "enough"))
        end = await tray.result()
    assert end.left == 1
    assert [each.status for each in await desk.runs(uuid)] == ["CANCELLED"]
    (error,) = await desk.errors(uuid)
    assert "cancelled by rita: enough" in error.full
    assert (await desk.get(uuid)).status == "HAS_ERROR"


@pytest.mark.parametrize(("process", "n", "status"), [(BY_AGENT, HELD, "RUNNING"), (BY_PERSON, 5, "AWAITING_REVIEW")])
async def test_cancelling_a_tray_cancels_its_run(house: House, process: object, n: int, status: str) -> None:
    """What waits below the tray stops with it, and says by whom; no question is left open."""
    desk = await desk_of(house, process)
    uuid = await desk.add({"n": n}, "INTAKE_COMPLETED")
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        await desk.waiting(uuid, status)
        await tray.cancel()
        with pytest.raises(WorkflowFailureError):
            await tray.result()
        row = await desk.waiting(uuid, "CANCELLED")
    assert row.failure == f"cancelled by the tray of Transaction {uuid}, which started it"


async def test_children_of_a_split_wait_side_by_side(house: House) -> None:
    """BP-8: each child has runs and a review of its own; they are answered in any order, and joined when all are."""
    desk = await desk_of(house, PARTED)
    uuid = await desk.add({"numbers": [1, 2, 3]})
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        children = await eventually(lambda: desk.children(uuid), "the Transaction is parted")
        asked = [await desk.waiting(child.uuid) for child in children]
        assert len({row.run_id for row in asked}) == 3
        for number, row in reversed(list(enumerate(asked, start=1))):
            await house.decide(row.run_id, "yes", f"number {number}")
        end = await tray.result()
    assert (end.transactions, end.left) == (4, 0)
    made = await desk.get(uuid)
    assert (made.status, made.data["said"]) == ("PROCESSING_COMPLETED", ["number 1", "number 2", "number 3"])


async def test_a_child_whose_run_fails_leaves_the_others(house: House) -> None:
    """BP-10. The run of one child fails; the others are asked, and their parent misses it at the join."""
    desk = await desk_of(house, PARTED)
    uuid = await desk.add({"numbers": [1, -2]})
    async with house.worker():
        tray = await desk.tray(uuid, "processing")
        good, bad = await eventually(lambda: desk.children(uuid), "the Transaction is parted")
        await desk.becomes(bad.uuid, "HAS_ERROR")
        await house.decide((await desk.waiting(good.uuid)).run_id, "yes")
        end = await tray.result()
    assert (end.transactions, end.left) == (3, 2)
    (error,) = await desk.errors(uuid)
    assert (error.code, error.task) == ("CHILDREN_MISSING", "gather")
    (error,) = await desk.errors(bad.uuid)
    assert (error.code, error.root) == ("RunFailedError", uuid)


async def test_a_run_that_the_engine_stops_fails_its_transaction(house: House) -> None:
    """Stopped by the engine's own tools, kindly or not, the run is no end of the tray: its Transaction is HAS_ERROR."""
    desk = await desk_of(house, BY_AGENT)
    async with house.worker():
        for stop, code in (("cancel", "RunCancelledError"), ("terminate", "RunFailedError")):
            uuid = await desk.add({"n": HELD})
            tray = await desk.tray(uuid, "processing")
            run = await desk.waiting(uuid, "RUNNING")
            await getattr(house.client.get_workflow_handle(str(run.run_id)), stop)()
            end = await tray.result()
            assert end.left == 1
            assert (await desk.get(uuid)).status == "HAS_ERROR"
            assert [error.code for error in await desk.errors(uuid)] == [code]
