"""What the engine knows of a run that does not move: rows cannot tell, since a step that waits for the database, or for
a worker, has nobody to write them.

Here: questions to the engine, each one bounded in time, and their answers as plain facts. Not here: what a reader is
told of them (`api.doing`, `cli.status`). No answer is an answer: whoever asks goes on with what the rows say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
    WorkflowTaskFailedCause,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.service import RPCError

from casework.durable.sealed_failures import opened
from casework.errors import StoreUnavailableError

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp
    from temporalio.api.failure.v1 import Failure
    from temporalio.api.history.v1 import HistoryEvent
    from temporalio.api.workflow.v1 import PendingActivityInfo
    from temporalio.client import Client

PATIENCE = timedelta(seconds=2)
"""Longest wait for one answer; what is asked here is worth no more. A first call connects too, which the time-outs of
calls do not bound: hence one around the whole question."""
TAIL = 60
"""Newest events of a history in which a wait for the database is looked for."""
POLL = timedelta(seconds=75)
"""A worker asks for work at least once a minute: one that has not for this long is gone."""
CODE_FAULTS = frozenset(
    {
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
    }
)
"""Why a workflow task fails that fails again until another worker takes it. The others are the engine's own ways."""


@dataclass(frozen=True)
class Pending:
    """A step that the engine has in hand. `attempt` is the engine's count, in this round of its retry policy.

    queued: no worker has taken it yet. delayed: its last attempt failed and the next one is due at `next_attempt_at`.
    running: a worker has it.
    """

    step: str
    state: Literal["queued", "delayed", "running"]
    attempt: int
    attempts: int
    since: datetime | None
    next_attempt_at: datetime | None = None
    failure: str | None = None


@dataclass(frozen=True)
class StoreFault:
    """A step that could not have the database: the reason, when that was, and when it is tried again.

    `next_attempt_at` None: it is being tried, and perhaps has the database by now, which its ledger row then shows.
    """

    step: str
    reason: str
    at: datetime
    next_attempt_at: datetime | None


@dataclass(frozen=True)
class TaskFault:
    """A worker could not advance the run, and it has not moved since: the worker's words, and when that was."""

    reason: str
    at: datetime
    unfit: bool
    """Whether the worker's build does not fit the run's history."""


@dataclass(frozen=True)
class InHand:
    """A run that is open in the engine. `task_since`: since when it waits for a worker to advance it."""

    pending: tuple[Pending, ...] = ()
    task_since: datetime | None = None
    store_faults: tuple[StoreFault, ...] = ()
    task_fault: TaskFault | None = None

    def waiting_for_store(self, claimed: Mapping[str, datetime]) -> tuple[StoreFault, ...]:
        """Steps that wait for the database. `claimed`: when steps in flight last wrote their row, by activity id."""
        return tuple(
            fault
            for fault in self.store_faults
            if fault.next_attempt_at or fault.step not in claimed or claimed[fault.step] < fault.at
        )

    def queued_since(self) -> datetime | None:
        """Since when the longest waiting part of it has found no worker."""
        waiting = [step.since for step in self.pending if step.state == "queued" and step.since]
        return min([*waiting, *([self.task_since] if self.task_since else [])], default=None)


@dataclass(frozen=True)
class Workers:
    """Who asked for work on the queue in the last minutes. `seen`: the newest time of each, by name."""

    seen: dict[str, datetime]

    def alive(self, now: datetime) -> list[str]:
        """Names of those that asked for work lately enough to be taken for alive."""
        return sorted(name for name, at in self.seen.items() if now - at < POLL)

    @property
    def last(self) -> datetime | None:
        """When anybody asked last."""
        return max(self.seen.values(), default=None)


async def in_hand(client: Client, run_id: str) -> InHand | None:
    """What the engine has in hand for a run; None where it does not say, or the run is not open in it."""
    execution = WorkflowExecution(workflow_id=run_id)
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            found = await client.workflow_service.describe_workflow_execution(
                DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution), timeout=PATIENCE
            )
            return await _in_hand(client, execution, found)
    except (RPCError, RuntimeError, TimeoutError):
        return None


async def _in_hand(
    client: Client, execution: WorkflowExecution, found: DescribeWorkflowExecutionResponse
) -> InHand | None:
    if found.workflow_execution_info.HasField("close_time"):
        return None
    for each in found.pending_activities:
        await opened(client.data_converter, each.last_failure)
    pending = tuple(_pending(each) for each in found.pending_activities)
    task = found.pending_workflow_task
    scheduled = found.HasField("pending_workflow_task") and (
        task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    )
    events = await _newest(client, execution)
    faults = _store_faults(events, {each.step for each in pending})
    return InHand(pending, _at(task.scheduled_time) if scheduled else None, faults, _task_fault(events))


def _pending(found: PendingActivityInfo) -> Pending:
    running = found.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    failed = found.HasField("last_failure")
    due = _at(found.next_attempt_schedule_time) if found.HasField("next_attempt_schedule_time") else None
    since = found.last_started_time if found.HasField("last_started_time") else found.scheduled_time
    return Pending(
        step=found.activity_id,
        state="running" if running else "delayed" if due and due > datetime.now(UTC) else "queued",
        attempt=found.attempt,
        attempts=found.maximum_attempts,
        since=_at(since) if running or not due else due,
        next_attempt_at=None if running else due,
        failure=_said(found.last_failure) if failed else None,
    )


async def _newest(client: Client, execution: WorkflowExecution) -> list[HistoryEvent]:
    """The end of a history, the newest event first, with failures in clear."""
    tail = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace, execution=execution, maximum_page_size=TAIL
        ),
        timeout=PATIENCE,
    )
    events = list(tail.history.events)
    for event in events:
        await opened(client.data_converter, event.activity_task_failed_event_attributes.failure)
        await opened(client.data_converter, event.workflow_task_failed_event_attributes.failure)
    return events


def _task_fault(events: Sequence[HistoryEvent]) -> TaskFault | None:
    """The first failure of the task that is being tried; only that one is written into the history."""
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            unfit = failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
            fault = TaskFault(failed.failure.message, _at(event.event_time), unfit)
            return fault if failed.cause in CODE_FAULTS else None
    return None


def _store_faults(events: Sequence[HistoryEvent], in_hand_now: set[str]) -> tuple[StoreFault, ...]:
    """Steps whose newest word in the history is that the database was not to be had.

    Between two tries the run pauses by a timer, and the engine has nothing in hand; that it was the database stands
    at the history's end and nowhere else. Such a step is always tried again, so that the last word holds.
    """
    due = min((_due(timer) for timer in _open_timers(events)), default=None)
    found = []
    for step, last in _last_words(events).items():
        failed = last.activity_task_failed_event_attributes
        if last.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED and _of_store(failed.failure):
            next_at = None if step in in_hand_now else due
            found.append(StoreFault(step, _said(failed.failure), _at(last.event_time), next_at))
    return tuple(found)


def _last_words(events: Sequence[HistoryEvent]) -> dict[str, HistoryEvent]:
    """How the newest try of each step ended, by its activity's id; `events` come newest first."""
    names = {
        event.event_id: event.activity_task_scheduled_event_attributes.activity_id
        for event in events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    }
    last: dict[str, HistoryEvent] = {}
    for event in events:
        scheduled = _scheduled_by(event)
        if scheduled in names:
            last.setdefault(names[scheduled], event)
    return last


def _scheduled_by(event: HistoryEvent) -> int:
    """The event that scheduled the activity whose end this is; 0 where it is none."""
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        return event.activity_task_failed_event_attributes.scheduled_event_id
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        return event.activity_task_completed_event_attributes.scheduled_event_id
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        return event.activity_task_timed_out_event_attributes.scheduled_event_id
    return 0


def _open_timers(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    fired = {
        event.timer_fired_event_attributes.started_event_id
        for event in events
        if event.event_type == EventType.EVENT_TYPE_TIMER_FIRED
    }
    return [
        event
        for event in events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED and event.event_id not in fired
    ]


def _due(timer: HistoryEvent) -> datetime:
    return _at(timer.event_time) + timer.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()


def _of_store(failure: Failure) -> bool:
    return failure.application_failure_info.type == StoreUnavailableError.__name__


def _said(failure: Failure) -> str:
    if failure.HasField("timeout_failure_info"):
        return "the worker that ran it was lost, or took too long"
    return failure.message


def _at(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


async def workers(client: Client, task_queue: str) -> Workers | None:
    """Who works on a queue; None where the engine does not say."""
    kinds = (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            answers = await asyncio.gather(*(_pollers(client, task_queue, kind) for kind in kinds))
    except (RPCError, RuntimeError, TimeoutError):
        return None
    seen: dict[str, datetime] = {}
    for answer in answers:
        for poller in answer.pollers:
            at = _at(poller.last_access_time)
            seen[poller.identity] = max(at, seen.get(poller.identity, at))
    return Workers(seen)


async def _pollers(client: Client, task_queue: str, kind: TaskQueueType.ValueType) -> DescribeTaskQueueResponse:
    return await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=task_queue), task_queue_type=kind
        ),
        timeout=PATIENCE,
    )
