"""The two fault points that lie outside activity bodies, as a worker's interceptor; workers of drills alone have it.

`sent`: the destination has the call and has not answered; known by the file that it leaves. (A transactional tool sends
nothing; its activity passes `sent` itself.) `reported`: the workflow has learned of a result, and the workflow task
that learned it is not done. Workflow code knows nothing of either.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from temporalio import activity, workflow
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from casework import ids
from casework.durable import contracts, policies
from casework.durable.activities.faults import (
    KEY,
    OVER,
    Fault,
    FaultFolder,
    fault_folder,
    fault_point,
    in_flight,
    strike,
)
from casework.durable.contracts import CALL_TOOL, ToolCall

LOOK_EVERY_S = 0.005
ATTEMPTS = {
    contracts.CALL_MODEL: policies.MODEL.attempts,
    contracts.CALL_TOOL: policies.TOOL.attempts,
    contracts.PROJECT: policies.STORE.attempts,
    contracts.RUN_SEGMENT: policies.SEGMENT.attempts,
}
"""Attempts of each activity. The others (the sweep) come again by themselves, so theirs are not counted."""


def drill_interceptors() -> Sequence[Interceptor]:
    """The interceptor, where this process takes part in a drill."""
    folder = fault_folder()
    return () if folder is None else (FaultInterceptor(folder),)


class FaultInterceptor(Interceptor):
    """Adds the points `sent` and `reported`."""

    def __init__(self, folder: FaultFolder) -> None:
        self._folder = folder

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # the SDK's name
        """Watch over tool calls."""
        return _WatchedActivity(next, self._folder)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002, ARG002  # the SDK's name
        """Watch over results."""
        return _WatchedWorkflow


class _WatchedActivity(ActivityInboundInterceptor):
    """One execution of an activity; the SDK makes one of these for each."""

    def __init__(self, inner: ActivityInboundInterceptor, folder: FaultFolder) -> None:
        super().__init__(inner)
        self._folder = folder
        self._heart = _Heart()

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._heart.next = outbound
        super().init(self._heart)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        info = activity.info()
        with in_flight(info.attempt, ATTEMPTS.get(info.activity_type, math.inf)):
            return await self._watched(input)

    async def _watched(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        call = input.args[0] if input.args else None
        if not isinstance(call, ToolCall):
            return await super().execute_activity(input)
        try:
            return await self._struck(input, call)
        finally:
            self._folder.passed(OVER, call.owner.run_id, call.path)

    async def _struck(self, input: ExecuteActivityInput, call: ToolCall) -> Any:  # noqa: A002  # the SDK's name
        fault = self._folder.due("sent", call.owner.run_id, call.path)
        if fault is not None and fault.action == "mute":
            self._heart.muted = self._folder.claim(fault, call.owner.run_id, call.path)
        if fault is None or fault.action == "mute" or fault.received is None:
            return await super().execute_activity(input)
        watching = asyncio.create_task(_strike_when_received(self._folder, fault, call))
        try:
            return await super().execute_activity(input)
        finally:
            watching.cancel()


class _Heart(ActivityOutboundInterceptor):
    """Heartbeats of one execution, lost while `muted`."""

    next: ActivityOutboundInterceptor

    def __init__(self) -> None:
        self.muted = False

    def heartbeat(self, *details: Any) -> None:
        if not self.muted:
            self.next.heartbeat(*details)


async def _strike_when_received(folder: FaultFolder, fault: Fault, call: ToolCall) -> None:
    key = str(ids.step_id(UUID(call.owner.run_id), call.path))
    received = folder.received / (fault.received or KEY).replace(KEY, key).replace("/", "_")
    while not received.exists():  # noqa: ASYNC110  # another process makes the file; no event tells
        await asyncio.sleep(LOOK_EVERY_S)
    strike(folder, fault, call.owner.run_id, call.path)


class _WatchedWorkflow(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_WatchedResults(outbound))


class _WatchedResults(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002  # the SDK's name
        handle = super().start_activity(input)
        if input.activity == CALL_TOOL and input.activity_id is not None:
            path, run = input.activity_id, workflow.info().workflow_id
            handle.add_done_callback(lambda done: _learned(done, run, path))
        return handle


def _learned(done: Any, run: str, path: str) -> None:
    if workflow.unsafe.is_replaying() or done.cancelled() or done.exception() is not None:
        return
    fault_point("reported", path, run)
