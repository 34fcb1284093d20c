"""Incidents: a run that the engine cannot go on with stays open, says so, and goes on when the right build runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from temporalio.worker import Worker

from casework.cli.root import code_of_run
from casework.durable.activations import patient_worker
from casework.durable.contracts import Decision
from casework.durable.worker import workflow_runner
from casework.durable.workflows.sweep import Sweep
from tests.integration.durable.conftest import APPLICATION, House, eventually
from tests.integration.durable.other_builds import Changed
from tests.integration.durable.sweeping import sweep_now
from tests.integration.operator.conftest import Site

REPORTED_S = 150
"""The engine reports a problem after five failed tries, within about a minute."""


def changed_worker(house: House) -> Worker:
    """A worker whose workflow code was changed without a patch point."""
    queue = house.settings.temporal.task_queue
    return patient_worker(
        4, client=house.client, task_queue=queue, workflows=[Changed, Sweep], workflow_runner=workflow_runner()
    )


async def shown(site: Site, run_id: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """What `casework runs show` prints; in a thread, since the API is served in this one's loop."""
    capsys.readouterr()
    asking = threading.Thread(target=code_of_run, args=(["runs", "show", str(run_id)],))
    asking.start()

    async def ended() -> bool:
        return not asking.is_alive()

    await eventually(ended, "the command has ended")
    return capsys.readouterr().out


async def test_a_run_that_meets_another_build_is_an_incident(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DA-19, DA-32. Workers whose code does not fit the history: the run stays open, and everybody is told why.

    Whoever looks at the run is told at the first failure; the flag, with reason and time, comes when the engine has
    reported several. When the right build is there the run goes on from where it was; the flag is taken down.
    """
    monkeypatch.setenv("CASEWORK_API_URL", site.url)
    monkeypatch.setenv("CASEWORK_TOKEN", site.token)
    house = site.house
    async with house.worker():
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    review = str((await house.review(run_id)).review_id)
    async with changed_worker(house):
        await house.runs.decide(str(run_id), Decision(review, "odd", "nonsense", "", "rita"))
        doing = await site.is_doing(run_id, "incident")
        assert "no worker can advance it" in doing["text"]
        assert "the build that fits" in doing["text"]
        assert doing["since"]
        assert (await site.api(f"/v1/runs/{run_id}"))["incident"] is None

        async def flagged() -> bool:
            return (await sweep_now(house)).incidents == 1

        await eventually(flagged, "the sweep has found the incident", REPORTED_S)
    seen = await site.api(f"/v1/runs/{run_id}")
    assert (seen["status"], seen["incident"]["kind"]) == ("AWAITING_REVIEW", "engine")
    assert "NonDeterministicError" in seen["incident"]["reason"]
    assert seen["incident"]["at"]
    assert "build that fits" in seen["doing"]["text"]
    assert "Incident: " in await shown(site, run_id, capsys)
    line = (await site.status())["incidents"]
    assert (line.state, str(run_id) in line.text) == ("broken", True)
    assert (await sweep_now(house)).incidents == 1
    async with house.worker():

        async def cleared() -> bool:
            await sweep_now(house)
            return (await house.run(run_id)).incident is None

        await eventually(cleared, "the incident is over", REPORTED_S)
        assert (await site.status())["incidents"].state == "fine"
        await house.decide(run_id, "approve")
        assert (await house.reaches(run_id, "COMPLETED")).outcome == "approved"
    told = [event.kind.partition(":")[0] for event in await house.events(run_id) if "incident" in event.kind]
    assert told == ["incident_raised", "incident_cleared"]
