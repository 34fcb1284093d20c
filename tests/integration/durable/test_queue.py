"""Steps that wait in the queue: for longer than their time-outs, with no worker, or behind more steps than slots."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from casework.agents import ModelAnswer, ModelRequest, tool
from casework.durable import policies
from casework.durable.activations import patient_worker
from casework.durable.worker import workflow_runner
from casework.durable.workflows.run import CaseRun
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import House, eventually


async def times_out(house: House, run_id: UUID) -> int:
    """How many steps of the run the engine has given up by a time-out, or a worker has given back."""
    history = await house.client.get_workflow_handle(str(run_id)).fetch_history()
    return sum(
        event.HasField("activity_task_timed_out_event_attributes")
        or event.activity_task_failed_event_attributes.failure.application_failure_info.type == "QueuedTooLongError"
        for event in history.events
    )


async def test_no_worker_for_longer_than_a_model_step_may_take(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. For several times as long as a model step has in all, nobody takes it: no attempt is used, and it ends.

    The run's own workflow task is served meanwhile, by a worker without activities, or nothing would time out.
    """
    assert policies.MODEL.schedule_to_close == 180
    monkeypatch.setattr(policies, "MODEL", replace(policies.MODEL, start_to_close=3, schedule_to_close=3))
    house.app = errand(tmp_path, [], asking())
    await house.open()
    run_id = await house.start({}, "errand")
    queue = house.settings.temporal.task_queue
    async with patient_worker(
        4, client=house.client, task_queue=queue, workflows=[CaseRun], workflow_runner=workflow_runner()
    ):

        async def timed_out() -> bool:
            return await times_out(house, run_id) >= 3

        await eventually(timed_out, "the step has waited for several times its time", 90)
    async with house.worker():
        await house.reaches(run_id, "AWAITING_REVIEW", deadline_s=90)
    [step] = await house.steps(run_id)
    assert (step.kind, step.attempt, step.state) == ("model", 1, "COMPLETED")


async def test_more_steps_than_slots_for_longer_than_their_time(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. One slot, many steps: most wait for longer than they have. Each is done once, and no run fails."""
    monkeypatch.setattr(policies, "MODEL", replace(policies.MODEL, start_to_close=3, schedule_to_close=4))
    asked: list[int] = []

    def slow(request: ModelRequest) -> ModelAnswer:
        asked.append(len(asked))
        return asking([("look", {})])(request)  # type: ignore[operator,no-any-return]

    @tool(effects=False)
    async def look() -> str:
        """Look."""
        await asyncio.sleep(1)  # the work itself: what fills the queue
        return "found"

    house.settings = replace(house.settings, worker=replace(house.settings.worker, max_activities=1))
    async with house.with_app(errand(tmp_path, [look], slow)) as busy:
        started = [await busy.start({}, "errand") for _ in range(8)]
        for run_id in started:
            await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=240)
        waited = [await times_out(busy, run_id) for run_id in started]
        steps = [step for run_id in started for step in await busy.steps(run_id)]
    assert sum(waited) > 0, "nothing has waited too long: the test shows nothing"
    assert {(step.attempt, step.state) for step in steps} == {(1, "COMPLETED")}
    assert len(asked) == 2 * len(started)
