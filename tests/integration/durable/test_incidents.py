"""Incidents: a run that the engine cannot go on with stays open, says so, and goes on when the right build runs."""

from __future__ import annotations

from temporalio.worker import Worker

from casework.durable.contracts import Decision
from casework.durable.worker import workflow_runner
from casework.durable.workflows.sweep import Sweep
from tests.integration.durable.conftest import APPLICATION, House, eventually
from tests.integration.durable.other_builds import Changed
from tests.integration.durable.sweeping import sweep_now

REPORTED_S = 150
"""The engine reports a problem after five failed tries, within about a minute."""


async def test_a_run_that_meets_another_build_is_an_incident(house: House) -> None:
    """DA-19. Workers whose code does not fit the history: the run stays open with a flag that says why and since when.

    When the right build is there the run goes on from where it was; the flag is taken down, and events tell of both.
    """
    async with house.worker():
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    review = str((await house.review(run_id)).review_id)
    queue = house.settings.temporal.task_queue
    changed = Worker(house.client, task_queue=queue, workflows=[Changed, Sweep], workflow_runner=workflow_runner())
    async with changed:
        await house.runs.decide(str(run_id), Decision(review, "odd", "nonsense", "", "rita"))

        async def flagged() -> bool:
            return (await sweep_now(house)).incidents == 1

        await eventually(flagged, "the sweep has found the incident", REPORTED_S)
    row = await house.run(run_id)
    assert row.status == "AWAITING_REVIEW"
    assert "NonDeterministicError" in row.incident["reason"]
    assert "build that fits" in row.incident["reason"]
    assert row.incident["at"]
    assert (await sweep_now(house)).incidents == 1
    async with house.worker():

        async def cleared() -> bool:
            await sweep_now(house)
            return (await house.run(run_id)).incident is None

        await eventually(cleared, "the incident is over", REPORTED_S)
        await house.decide(run_id, "approve")
        assert (await house.reaches(run_id, "COMPLETED")).outcome == "approved"
    told = [event.kind.partition(":")[0] for event in await house.events(run_id) if "incident" in event.kind]
    assert told == ["incident_raised", "incident_cleared"]
