"""Workflow code that takes long in one stretch: on a machine that was slow, and for good. On a real Temporal server."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import UnsandboxedWorkflowRunner

from casework.durable.activations import DEADLOCK_S, Activations, patient_worker
from casework.durable.worker import make_worker
from casework.projection.outbox import Outbox
from tests.integration.durable.conftest import House
from tests.replay.replaying import files, replayer

STOPPED_S = 40
"""Longer than any of these workers takes to stop."""

slow_for: list[float] = []
"""How long the third stretches of runs still to come take, in seconds."""


@pytest.fixture(autouse=True)
def _fresh() -> None:
    slow_for.clear()


@activity.defn
async def give_back(number: int) -> int:
    """The number."""
    return number


@workflow.defn(sandboxed=False)
class Sums:
    """Four activities one after the other, each in tasks of its own."""

    @workflow.run
    async def run(self) -> int:
        """Their sum."""
        total = 0
        for number in range(4):
            total += await asyncio.create_task(self._middle(number))
        return total

    async def _middle(self, number: int) -> int:
        return await asyncio.create_task(self._one(number))

    async def _one(self, number: int) -> int:
        if number == 2 and slow_for:
            time.sleep(slow_for.pop())  # noqa: ASYNC251  that is what is tested
        return await workflow.execute_activity(give_back, number, start_to_close_timeout=timedelta(seconds=10))


async def summed(client: Client) -> tuple[int, int]:
    """The result of a run, once its worker has stopped too; and how many of its workflow tasks failed."""
    queue = f"slow-{uuid4().hex}"
    worker = patient_worker(
        8,
        client=client,
        task_queue=queue,
        workflows=[Sums],
        activities=[give_back],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with asyncio.timeout(STOPPED_S):
        async with worker:
            run = await client.start_workflow(Sums.run, id=f"slow-{uuid4()}", task_queue=queue)
            total = await run.result()
    history = await run.fetch_history()
    return total, sum(event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED for event in history.events)


async def test_a_stretch_that_is_slow_once_is_waited_for(temporal_client: Client) -> None:
    """Three seconds are no deadlock: the same activation goes on, and no workflow task fails."""
    slow_for.append(3)
    assert await summed(temporal_client) == (6, 0)


async def test_a_run_is_evicted_only_when_its_code_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the limit the workflow task fails, and the worker stops when it is told to.

    In the SDK's own threads the eviction tears the run's tasks while the slow stretch is still in them: their wake-ups
    are lost, and the worker waits for ever. Which runs it hits is a matter of their tasks; this one is hit always.
    """
    stretches = 0
    take = Outbox.take

    def slow(outbox: Outbox) -> Any:
        nonlocal stretches
        stretches += 1
        if stretches == 2:
            time.sleep(3.5)
        return take(outbox)

    monkeypatch.setattr(Outbox, "take", slow)
    (kept,) = (path for path in files() if path.stem == "questions_in_branches")
    history = WorkflowHistory.from_json(kept.stem, kept.read_text())
    async with asyncio.timeout(STOPPED_S):
        replayed = await replayer().replay_workflow(history, raise_on_replay_failure=False)
    assert "Workflow activation completion failed" in str(replayed.replay_failure)


async def test_the_workers_have_both(house: House) -> None:
    """The worker of the product has these threads, and this patience."""
    made = make_worker(house.client, house.services(), house.settings)
    side = made._workflow_worker
    assert side is not None
    assert side._deadlock_timeout_seconds == DEADLOCK_S
    assert isinstance(side._workflow_task_executor, Activations)
