"""What the engine knows of runs, as far as the sweep asks: which are open, how one ended, what one was started with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowHistoryEventFilterType,
)
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from casework.durable import contracts
from casework.durable.client import CALL_TIMEOUT
from casework.durable.contracts import RunEnd, RunStart
from casework.durable.sealed_failures import opened
from casework.values import clean, instant, shortened

PROBLEMS = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")
"""Set by the engine when a run's workflow task has failed several times in a row; taken off when one succeeds."""
OPEN = f"{contracts.OF_RUNS} AND ExecutionStatus = 'Running'"
"""Open runs, in the engine's query language."""
GONE = "its Temporal workflow no longer exists: deleted from outside, or its history has expired"
SET_BACK = "This row does not say so: it could not be written, or the database was set back to an earlier time."


@dataclass(frozen=True, slots=True)
class EngineRun:
    """An open run. `problems` are the engine's words for what it cannot go on with."""

    run_id: str
    queue: str
    started: datetime
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """How many runs are open, and how many of them the engine cannot go on with."""

    open: int
    troubled: int


class EngineSide:
    """Questions to the engine. Errors are the SDK's: the caller knows whether one run or the engine is at fault."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def open_runs(self) -> dict[str, EngineRun]:
        """All open runs of the namespace by id; the list may be some seconds late."""
        return {found.id: _engine_run(found) async for found in self._client.list_workflows(OPEN, page_size=1000)}

    async def counted(self) -> Counted:
        """The same as numbers, which cost the engine much less."""
        count = self._client.count_workflows
        return Counted((await count(OPEN)).count, (await count(f"{OPEN} AND {PROBLEMS.name} IS NOT NULL")).count)

    async def ending(self, run_id: str) -> str | None:
        """How the run's Temporal workflow ended, for a reader of the row; None while it is open."""
        handle = self._client.get_workflow_handle(run_id)
        try:
            found = await handle.describe(rpc_timeout=CALL_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return GONE
            raise
        except ValueError:  # a status that the SDK does not know, such as paused: not closed
            return None
        if found.status in (WorkflowExecutionStatus.RUNNING, None):
            return None
        words: str = clean(shortened(await self._told(found, await self._event(run_id, last=True)))).value
        return words

    async def started_with(self, run_id: str) -> RunStart | None:
        """The input of the run; None where it is gone or is no run's input."""
        first = await self._event(run_id, last=False)
        if first is None or not first.HasField("workflow_execution_started_event_attributes"):
            return None
        payloads = first.workflow_execution_started_event_attributes.input.payloads
        try:
            [start] = await self._client.data_converter.decode(payloads, [RunStart])
        except Exception:  # noqa: BLE001  # somebody started it by hand, with anything
            return None
        return start if isinstance(start, RunStart) else None

    async def has_workers(self, queue: str) -> bool:
        """Whether anybody has asked for workflow tasks of this task queue lately."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        found = await self._client.workflow_service.describe_task_queue(request, timeout=CALL_TIMEOUT)
        return bool(found.pollers)

    async def _event(self, run_id: str, *, last: bool) -> HistoryEvent | None:
        kinds = WorkflowHistoryEventFilterType
        events = self._client.get_workflow_handle(run_id).fetch_history_events(
            page_size=1,
            event_filter_type=kinds.CLOSE_EVENT if last else kinds.ALL_EVENT,
            rpc_timeout=CALL_TIMEOUT,
        )
        try:
            return await anext(events, None)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def _told(self, found: WorkflowExecution, closing: HistoryEvent | None) -> str:
        name = "UNKNOWN" if found.status is None else found.status.name
        at = "" if found.close_time is None else f" at {instant(found.close_time)}"
        if closing is None:
            return f"its Temporal workflow was closed from outside ({name}){at}"
        if closing.HasField("workflow_execution_terminated_event_attributes"):
            made = closing.workflow_execution_terminated_event_attributes
            who, why = made.identity or "somebody unnamed", made.reason or "no reason was given"
            return f"its Temporal workflow was closed from outside ({name}{at} by {who}): {why}"
        if closing.HasField("workflow_execution_timed_out_event_attributes"):
            return f"its Temporal workflow was closed from outside ({name}{at}): it ran into a time limit of the engine"
        if closing.HasField("workflow_execution_canceled_event_attributes"):
            return f"its Temporal workflow was cancelled in the engine ({name}{at}). {SET_BACK}"
        return f"its Temporal workflow ended by itself ({name}{at}): {await self._result(closing)}. {SET_BACK}"

    async def _result(self, closing: HistoryEvent) -> str:
        if closing.HasField("workflow_execution_failed_event_attributes"):
            await opened(self._client.data_converter, closing.workflow_execution_failed_event_attributes.failure)
            return f"the run is FAILED: {closing.workflow_execution_failed_event_attributes.failure.message}".rstrip(
                "."
            )
        payloads = closing.workflow_execution_completed_event_attributes.result.payloads
        try:
            [end] = await self._client.data_converter.decode(payloads, [RunEnd])
        except Exception:  # noqa: BLE001  # a result that is none of ours
            return "its result cannot be read"
        outcome = "" if end.outcome is None else f" with outcome {end.outcome}"
        return f"the run is {end.status}{outcome}" + (f": {end.failure}".rstrip(".") if end.failure else "")


def _engine_run(found: WorkflowExecution) -> EngineRun:
    problems = found.typed_search_attributes.get(PROBLEMS) or ()
    return EngineRun(found.id, found.task_queue, found.start_time, tuple(problems))


def problem_words(problems: tuple[str, ...]) -> str:
    """Why the engine cannot go on, and what mends it."""
    known = ", ".join(each.removeprefix("cause=WorkflowTaskFailedCause") for each in problems if "cause=" in each)
    if "NonDeterministic" in known:
        mend = "The workers' build does not fit its history. It goes on when workers of the build that fits are there"
    else:
        mend = "See the workers' log. It goes on when a worker can carry out its workflow task"
    return f"its workflow task fails again and again ({known or ', '.join(problems)}). {mend}; nothing is lost."
