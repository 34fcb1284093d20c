"""Agent tasks: a Transaction waits for a run, and takes its outcome."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from casework.durable.contracts import RunEnd
from casework.process.identities import agent_run_id, step_key
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.desk import Desk, work_on
from tests.integration.durable.processes.waiting_app import BY_AGENT, CALLS, app
from tests.integration.durable.sweeping import sweep_now

DONE = RunEnd("COMPLETED", output=10)


async def desk_of(house: House) -> Desk:
    house.app = app(BY_AGENT)
    await house.open()
    CALLS.clear()
    return Desk(house)


async def test_the_run_is_a_row_before_it_is_started(house: House) -> None:
    """BP-8: run_id follows from step and attempt; the Transaction stands at the task and is linked to the run."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    start = await desk.begun(work)
    step = step_key(work.claim_id, "assess.1", claimed.uuid)
    assert start.run_id == str(agent_run_id(step, 1))
    row = await house.run(agent_run_id(step, 1))
    assert (row.status, row.workflow_name, row.request, row.user_id) == (
        "PENDING",
        "assess",
        {"n": 5},
        "process:processing",
    )
    assert (start.input, start.transaction, start.form) == ({"n": 5}, str(claimed.uuid), False)
    (linked,) = await desk.runs(claimed.uuid)
    assert (linked.run_id, linked.step_id, linked.task, linked.open) == (row.run_id, step, "assess", True)
    now = await desk.get(claimed.uuid)
    assert (now.status, now.claim_id, now.process, now.task) == (
        "PROCESSING_IN_PROGRESS",
        work.claim_id,
        "processing",
        "assess",
    )


async def test_what_is_begun_again_finds_its_run(house: House) -> None:
    """BP-9. The Task is asked once: a repeated activity, or two at one time, give the same run with the same input."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    first = await desk.begun(work)
    again = await asyncio.gather(*(desk.begun(work) for _ in range(3)))
    assert again == [first] * 3
    assert CALLS["input"] == 1
    assert len(await desk.runs(claimed.uuid)) == 1
    other = await desk.taken(await desk.add({"n": 6}, "INTAKE_COMPLETED"), "processing")
    both = await asyncio.gather(*(desk.begun(work_on(other, "assess")) for _ in range(4)))
    assert len({start.run_id for start in both}) == 1
    assert len(await desk.runs(other.uuid)) == 1


async def test_the_outcome_is_applied_once(house: House) -> None:
    """BP-9. The end that is told again changes nothing more, and says the same."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    start = await desk.begun(work)
    outcome = await desk.end(work, start, DONE)
    assert (outcome.kind, outcome.to, outcome.held, outcome.status) == (
        "passed",
        "",
        True,
        "PROCESSING_IN_PROGRESS",
    )
    assert await desk.end(work, start, DONE) == outcome
    assert (await desk.begin(work)).outcome == outcome
    assert CALLS == {"input": 1, "outcome": 1}
    now = await desk.get(claimed.uuid)
    assert now.data == {"n": 5, "twice": 10, "run": start.run_id}
    assert now.straight_through
    (step,) = await desk.steps(claimed.uuid)
    assert (step.state, step.kind, step.task) == ("COMPLETED", "agent", "assess")


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (RunEnd("FAILED", failure="double: -1 is below nothing"), "RunFailedError", "double: -1 is below nothing"),
        (RunEnd("CANCELLED", failure="cancelled by rita: enough"), "RunCancelledError", "cancelled by rita: enough"),
    ],
)
async def test_a_run_that_did_not_complete_fails_the_transaction(
    house: House, end: RunEnd, code: str, told: str
) -> None:
    """BP-23: a FAILED or CANCELLED run makes its Transaction HAS_ERROR, with the run's own reason."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    outcome = await desk.end(work, await desk.begun(work), end)
    assert (outcome.kind, outcome.status, outcome.held) == ("left", "HAS_ERROR", False)
    now = await desk.get(claimed.uuid)
    assert (now.status, now.status_before_error, now.claim_id) == ("HAS_ERROR", "PROCESSING_IN_PROGRESS", None)
    (error,) = await desk.errors(claimed.uuid)
    assert (error.type, error.code, error.task, error.process) == ("APPLICATION", code, "assess", "processing")
    assert told in error.full
    assert CALLS["outcome"] == 0


async def test_an_outcome_that_the_task_refuses_fails_the_transaction(house: House) -> None:
    """BP-23: what `outcome` raises is the Transaction's error, of the type and code that it says."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 13}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    outcome = await desk.end(work, await desk.begun(work), RunEnd("COMPLETED", output=26))
    assert outcome.kind == "left"
    assert "26 brings bad luck" in outcome.reason
    (error,) = await desk.errors(claimed.uuid)
    assert (error.type, error.code) == ("BUSINESS", "BAD_LUCK")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"n": "many"}, "input.n of workflow 'assess'"),
        ({}, "KeyError"),
    ],
)
async def test_an_input_that_cannot_be_starts_no_run(house: House, data: dict[str, str], told: str) -> None:
    """BP-23: an input that does not fit the workflow, or cannot be made, fails the Transaction before any run."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add(data, "INTAKE_COMPLETED"), "processing")
    begun = await desk.begin(work_on(claimed, "assess"))
    assert begun.start is None
    assert begun.outcome is not None
    assert (begun.outcome.kind, begun.outcome.status) == ("left", "HAS_ERROR")
    (error,) = await desk.errors(claimed.uuid)
    assert told in error.full
    assert await desk.runs(claimed.uuid) == []


@pytest.mark.unbalanced("stage log ends otherwise", "step is STARTED and its tray is over")
async def test_what_is_no_longer_the_trays_is_left_alone(house: House) -> None:
    """BP-24: once the status or the claim is another, neither activity touches a field of the Transaction."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    work = work_on(claimed, "assess")
    start = await desk.begun(work)
    async with house.db.transaction() as conn:
        await conn.execute("update process_ops.transactions set status = 'HAS_ERROR', claim_id = null")
    before = await desk.get(claimed.uuid)
    outcome = await desk.end(work, start, DONE)
    assert (outcome.kind, outcome.held, outcome.status) == ("left", False, "HAS_ERROR")
    begun = await desk.begin(work_on(claimed, "assess", visit=2))
    assert begun.outcome is not None
    assert begun.outcome.kind == "left"
    assert await desk.get(claimed.uuid) == before
    assert await desk.errors(claimed.uuid) == []


@pytest.mark.unbalanced("step is STARTED and its tray is over")
async def test_a_sweep_leaves_to_a_tray_what_it_is_about_to_start(house: House) -> None:
    """A PENDING run is its tray's to start while that holds the Transaction; then it is closed, and not started."""
    desk = await desk_of(house)
    claimed = await desk.taken(await desk.add({"n": 5}, "INTAKE_COMPLETED"), "processing")
    start = await desk.begun(work_on(claimed, "assess"))
    report = await sweep_now(house)
    assert (report.started, report.failed) == (0, 0)
    assert (await house.run(UUID(start.run_id))).status == "PENDING"
    async with house.db.transaction() as conn:
        await conn.execute("update process_ops.transactions set claim_id = null")
    report = await sweep_now(house)
    assert (report.started, report.failed) == (0, 1)
    row = await house.run(UUID(start.run_id))
    assert row.failure == f"the tray of Transaction {claimed.uuid}, which was to start it, let go of it"
