"""The worker's side of a step: a span around each attempt that an activity makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from casework import ids
from casework.durable.contracts import CALL_TOOL, ModelCall, Project, ToolCall
from casework.durable.segment_contracts import Segment
from casework.durable.tracing.headers import place_in
from casework.durable.tracing.workflows import BEGINS, RECORD, TracedWorkflow, above
from casework.errors import ToldError
from casework.telemetry import records
from casework.telemetry.calls import ACTIVE, STEPS, ActiveAttempt
from casework.telemetry.identity import Place, span_id_of, trace_id_of
from casework.telemetry.tracer import OpenSpan, Tracer


class TracingInterceptor(Interceptor):
    """A worker with this makes spans of its runs and attempts."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # the SDK's name
        """Watch over attempts."""
        return _TracedActivity(next, self._tracer)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002  # the SDK's name
        """Watch over runs; what they may call is handed to them, so that they hold no tracer."""
        input.unsafe_extern_functions.update({RECORD: self._tracer.record, BEGINS: self._tracer.begins})
        return TracedWorkflow


class _TracedActivity(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, tracer: Tracer) -> None:
        super().__init__(inner)
        self._tracer = tracer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        call = input.args[0] if input.args else None
        if isinstance(call, Segment):
            return await self._segment(input, call)
        if not isinstance(call, (ModelCall, ToolCall, Project)):
            return await super().execute_activity(input)
        parent = place_in(input.headers) or self._place(call, _path(call))
        with self._attempt(call, parent) as span:
            result = await super().execute_activity(input)
            if (state := getattr(result, "state", None)) is not None:
                span.set(records.STATE, state)
            return result

    async def _segment(self, input: ExecuteActivityInput, segment: Segment) -> Any:  # noqa: A002  # the SDK's name
        """No span of its own: each attempt in it has one, as if it had an activity to itself."""
        run = place_in(input.headers) or self._place(segment, "")
        token = STEPS.set(lambda call: self._step_attempt(call, run))
        try:
            return await super().execute_activity(input)
        finally:
            STEPS.reset(token)

    @contextmanager
    def _step_attempt(self, call: ToolCall, run: Place) -> Iterator[None]:
        told = None
        with self._attempt(call, run.at(UUID(call.owner.run_id), above(CALL_TOOL, call.path))) as span:
            try:
                yield
                span.set(records.STATE, "COMPLETED")
            except ToldError as error:  # the step's end, and no fault of the attempt
                span.set(records.STATE, "FAILED")
                told = error
        if told is not None:
            raise told

    @contextmanager
    def _attempt(self, call: ModelCall | ToolCall | Project, parent: Place) -> Iterator[OpenSpan]:
        common = _common(call)
        about = {**common, **_step(call), records.ENGINE_ATTEMPT: activity.info().attempt}
        with self._tracer.open(_name(call), parent, about, kind="consumer") as span:
            token = ACTIVE.set(ActiveAttempt(self._tracer, span, common))
            try:
                yield span
            finally:
                ACTIVE.reset(token)

    def _place(self, call: ModelCall | ToolCall | Project | Segment, path: str) -> Place:
        """Scheduled by a worker without traces: where the span above would be, had there been one."""
        run_id = UUID(call.owner.run_id)
        trace_id = trace_id_of(run_id)
        parent = span_id_of(run_id, above(activity.info().activity_type, path))
        return Place(trace_id, parent, self._tracer.begins(trace_id))


def _path(call: ModelCall | ToolCall | Project) -> str:
    """Of the step; a write of the run's outbox has none but the engine's name for it."""
    return activity.info().activity_id if isinstance(call, Project) else call.path


def _name(call: ModelCall | ToolCall | Project) -> str:
    if isinstance(call, Project):
        return "project"
    return "model" if isinstance(call, ModelCall) else f"tool {call.name}"


def _common(call: ModelCall | ToolCall | Project) -> dict[str, str | int | float | bool]:
    return {records.RUN_ID: call.owner.run_id, records.TENANT: call.owner.tenant, records.PATH: _path(call)}


def _step(call: ModelCall | ToolCall | Project) -> dict[str, str | int | float | bool]:
    if isinstance(call, Project):
        return {}
    return {
        records.STEP_ID: str(ids.step_id(UUID(call.owner.run_id), call.path)),
        records.WORKFLOW: call.workflow,
        records.VERSION: call.workflow_version,
        records.NODE: call.node,
    }
