"""The worker's side of a run: watches its Temporal workflow from outside, and writes the spans above the attempts.

This code runs with the workflow, also when it is replayed. It sends no commands and changes nothing but headers; a
span leaves it only where the engine does not replay. Dropping a run from memory ends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleSignalInput,
    HandleUpdateInput,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from casework.durable.contracts import PROJECT, RUN_SEGMENT, Decision, ModelCall, Project, RunStart, ToolCall, name_of
from casework.durable.segment_contracts import Segment, SegmentReply
from casework.durable.tracing.headers import place_in, with_place
from casework.durable.tracing.run_spans import RunFacts, RunSpans, nanoseconds
from casework.durable.workflows.shell import is_unwinding
from casework.telemetry.identity import Place, parent_path, span_id_of, trace_id_of
from casework.telemetry.records import SpanRecord

RECORD, BEGINS = "casework_record_span", "casework_trace_begins"
"""The worker's functions that this code may call: write a span; is a trace that begins here recorded."""
log = logging.getLogger("casework.telemetry")


class TracedWorkflow(WorkflowInboundInterceptor):
    """One run in memory."""

    def __init__(self, next: WorkflowInboundInterceptor) -> None:  # noqa: A002  # the SDK's name
        super().__init__(next)
        self.spans: RunSpans | None = None
        self.headers: dict[str, Any] = {}
        """What the run was started with: the next part of it begins with the same."""
        self._early: list[tuple[str, Place]] = []

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Watch over activities too."""
        super().init(_TracedActivities(outbound, self))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  # the SDK's name
        """The run itself; a span when it is over."""
        start = input.args[0] if input.args else None
        self.headers = dict(input.headers)
        if not isinstance(start, RunStart):
            return await super().execute_workflow(input)
        parent = place_in(input.headers)
        self.spans = RunSpans(_facts(start, parent), _emit)
        _harmless(lambda: _goes_on(start, self.spans))
        for decision_id, sender in self._early:
            self.spans.sent(decision_id, sender)
        try:
            end = await super().execute_workflow(input)
        except workflow.ContinueAsNewError:
            _harmless(self.spans.leaves)
            raise
        except BaseException as error:
            if not is_unwinding():
                state = "CANCELLED" if is_cancelled_exception(error) else "FAILED"
                kind = None if state == "CANCELLED" else getattr(error, "type", None) or "error"
                self._over(start, parent, state, kind)
            raise
        self._over(start, parent, str(getattr(end, "status", "COMPLETED")), None)
        return end

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002  # the SDK's name
        """A decision, sent and forgotten."""
        self._sent(input.args, input.headers)
        await super().handle_signal(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002  # the SDK's name
        """A decision whose sender waits."""
        self._sent(input.args, input.headers)
        return await super().handle_update_handler(input)

    def _sent(self, args: Any, headers: Mapping[str, Any]) -> None:
        sender = place_in(headers)
        if sender is None or not args or not isinstance(args[0], Decision):
            return
        if self.spans is None:
            self._early.append((args[0].decision_id, sender))
        else:
            self.spans.sent(args[0].decision_id, sender)

    def _over(self, start: RunStart, parent: Place | None, state: str, error: str | None) -> None:
        at = workflow.info().start_time if start.carried is None else datetime.fromisoformat(start.carried.since)
        spans, began = self.spans, nanoseconds(at)
        if spans is not None:
            _harmless(lambda: spans.over(workflow.time_ns(), start=began, parent=parent, state=state, error=error))


class _TracedActivities(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, run: TracedWorkflow) -> None:  # noqa: A002  # the SDK's name
        super().__init__(next)
        self._run = run

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002  # the SDK's name
        input.headers = {**self._run.headers, **input.headers}
        super().continue_as_new(input)

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002  # the SDK's name
        spans, call = self._run.spans, input.args[0] if input.args else None
        if spans is not None and isinstance(call, Segment):
            return self._start_segment(input, spans, call)
        if spans is None or not isinstance(call, (ModelCall, ToolCall, Project)):
            return super().start_activity(input)
        path = "" if isinstance(call, Project) else call.path
        _harmless(lambda: spans.carried(call.outbox))
        input.headers = with_place(input.headers, spans.facts.place(above(input.activity, path)))
        if not path:
            return super().start_activity(input)
        _harmless(lambda: spans.began(path, workflow.time_ns()))
        handle = super().start_activity(input)
        handle.add_done_callback(
            lambda _: None if is_unwinding() else _harmless(lambda: spans.ended(path, workflow.time_ns()))
        )
        return handle

    def _start_segment(
        self,
        input: StartActivityInput,  # noqa: A002  # the SDK's name
        spans: RunSpans,
        segment: Segment,
    ) -> workflow.ActivityHandle[Any]:
        """It has no place of its own: its attempts stand below their visits, which its answer tells of."""
        _harmless(lambda: spans.carried(segment.outbox))
        input.headers = with_place(input.headers, spans.facts.place(""))
        handle = super().start_activity(input)
        handle.add_done_callback(lambda _: None if is_unwinding() else _harmless(lambda: _passed(spans, handle)))
        return handle


def above(activity: str, path: str) -> str:
    """The path of the span above an attempt: a TOOL node's attempt stands below its own visit."""
    return "" if activity in (PROJECT, RUN_SEGMENT) else parent_path(path) or path


def _passed(spans: RunSpans, handle: workflow.ActivityHandle[Any]) -> None:
    """The visits that a segment has behind it, and the one that it has begun."""
    if handle.cancelled() or handle.exception() is not None:
        return
    reply: SegmentReply = handle.result()
    for visit in reply.passed():
        spans.passed(visit.path, _instant(visit.began), _instant(visit.ended))
    if reply.begun and reply.since:
        spans.goes_on(reply.begun, _instant(reply.since))


def _instant(text: str) -> int:
    return nanoseconds(datetime.fromisoformat(text))


def _facts(start: RunStart, parent: Place | None) -> RunFacts:
    run_id = UUID(start.run_id)
    if parent is None:
        trace_id = trace_id_of(run_id)
        parent = Place(trace_id, span_id_of(run_id, ""), bool(workflow.extern_functions()[BEGINS](trace_id)))
    return RunFacts(run_id, start.tenant, name_of(start.bundle), start.workflow_version, parent)


def _goes_on(start: RunStart, spans: RunSpans | None) -> None:
    carried = start.carried
    since = None if carried is None else carried.journal.get("visit_since")
    if spans is not None and carried is not None and carried.at_rest is not None and since:
        spans.goes_on(carried.at_rest, _instant(since))


def _emit(span: SpanRecord) -> None:
    if not workflow.unsafe.is_replaying():
        workflow.extern_functions()[RECORD](span)


def _harmless(note: Callable[[], None]) -> None:
    """A fault in here must cost a span and never a run."""
    try:
        note()
    except Exception:
        log.exception("a span could not be made")
