"""A cancellation that comes while a step is on its way back: the engine hands both on together, and the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker

from casework.durable import contracts
from casework.durable.activations import patient_worker
from casework.durable.activities.model import ModelActivity
from casework.durable.activities.project import ProjectActivity
from casework.durable.activities.tool import ToolActivity
from casework.durable.connection import connect
from casework.durable.contracts import CancelRequest
from casework.durable.worker import workflow_runner
from casework.durable.workflows.run import CaseRun
from tests.integration.durable.conftest import APPLICATION, House, eventually


class Gate(Interceptor):
    """Holds the `number`th activity of one type back, until it is let go."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.left = number
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # the SDK's name
        return _Held(next, self)


class _Held(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, gate: Gate) -> None:
        super().__init__(inner)
        self._gate = gate

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        gate = self._gate
        if activity.info().activity_type == gate.kind:
            gate.left -= 1
            if not gate.left:
                gate.reached.set()
                await gate.open.wait()
        return await super().execute_activity(input)


@asynccontextmanager
async def steps_only(house: House, gate: Gate) -> AsyncIterator[None]:
    """A worker for activities alone, behind the gate."""
    services, queue = house.services(), house.settings.temporal.task_queue
    activities = (
        ModelActivity(services).call_model,
        ToolActivity(services).call_tool,
        ProjectActivity(services).project,
    )
    client = await connect(house.settings)  # a client takes one worker of a queue at a time
    async with Worker(client, task_queue=queue, activities=activities, interceptors=[gate]):
        yield


def workflows_only(house: House) -> Worker:
    """A worker that runs no activity, so that it can go while one is under way."""
    queue = house.settings.temporal.task_queue
    return patient_worker(
        4, client=house.client, task_queue=queue, workflows=[CaseRun], workflow_runner=workflow_runner()
    )


async def is_back(house: House, run_id: UUID, kind: str, number: int) -> None:
    async def look() -> bool:
        events = (await house.client.get_workflow_handle(str(run_id)).fetch_history()).events
        started = [
            event.event_id
            for event in events
            if event.activity_task_scheduled_event_attributes.activity_type.name == kind
        ]
        done = [
            event.activity_task_completed_event_attributes.scheduled_event_id
            for event in events
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        ]
        return len(started) >= number and started[number - 1] in done

    await eventually(look, f"{kind} {number} of run {run_id} is back")


@pytest.mark.parametrize("by", ["the platform", "the engine's interface"])
@pytest.mark.parametrize(
    ("kind", "number"), [(contracts.PROJECT, 1), (contracts.CALL_TOOL, 1), (contracts.CALL_MODEL, 2)]
)
async def test_a_cancellation_beside_a_result_counts(house: House, kind: str, number: int, by: str) -> None:
    """DA-19, DA-36. The step's result and the cancellation reach the run in one task: it is CANCELLED, at once."""
    gate = Gate(kind, number)
    async with steps_only(house, gate):
        async with workflows_only(house):
            run_id = await house.start(APPLICATION)
            await asyncio.wait_for(gate.reached.wait(), 60)
        if by == "the platform":
            await house.runs.cancel(str(run_id), CancelRequest("olga", "withdrawn"))
        else:
            await house.client.get_workflow_handle(str(run_id)).cancel()
        gate.open.set()
        await is_back(house, run_id, kind, number)
        async with workflows_only(house):
            row = await house.reaches(run_id, "CANCELLED", deadline_s=40)
    assert "cancelled by" in str(row.failure)
