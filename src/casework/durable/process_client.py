"""Talking to processes: start, stop and poll by hand, schedules, and where a Monitor stands. The engine's side.

A message is durable once the engine has taken it, with or without a worker. What a Monitor's row says is the store's.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    ScheduleAction,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from casework.durable import monitor_contracts as contracts
from casework.durable.client import CALL_TIMEOUT, RunClient, reached
from casework.durable.monitor_contracts import Asked, MonitorEnd, MonitorStanding, MonitorStart, ProcessStart
from casework.durable.process_schedules import engine_schedule, schedule_id
from casework.errors import FatalError, InputError, PayloadUnreadableError, StateError, UnreachableError
from casework.process.schedules import Schedule
from casework.settings import HistorySettings

Made = TypeVar("Made")


@dataclass(frozen=True)
class MonitorLife:
    """The newest life of a Monitor: since when, how it ended, and where it stands as far as a worker can say."""

    open: bool
    since: datetime
    ended: datetime | None = None
    how: str | None = None
    """COMPLETED, FAILED, CANCELED, TERMINATED or TIMED_OUT; None while it is open."""
    standing: MonitorStanding | None = None


@dataclass(frozen=True)
class ScheduleStanding:
    """A schedule that the engine keeps; the instants of its next starts, in UTC.

    `declared` is the digest of the declaration that it was made of; "": an operator has set it.
    """

    paused: bool
    note: str | None
    next_starts: tuple[datetime, ...]
    declared: str = ""


@dataclass(frozen=True)
class ProcessStanding:
    """What the engine knows of a process."""

    monitor: MonitorLife | None
    schedule: ScheduleStanding | None


class ProcessClient:
    """Processes of one task queue, through the connection of its runs."""

    def __init__(self, runs: RunClient, histories: HistorySettings | None = None) -> None:
        self._runs = runs
        self._histories = histories or HistorySettings()

    async def start(self, tenant: str, process: str, by: str) -> bool:
        """Start the Monitor of a process by hand, which ends a stop by hand. False where it is there already.

        Raises:
            UnreachableError: the engine cannot be reached.
        """
        await self._runs.agree()
        start = MonitorStart(tenant, process, by, self._histories.roll_over_events)
        try:
            await reached(
                self._engine.start_workflow(
                    contracts.MONITOR_WORKFLOW,
                    start,
                    id=contracts.monitor_id(self._runs.task_queue, tenant, process),
                    task_queue=self._runs.task_queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    rpc_timeout=CALL_TIMEOUT,
                    static_summary=f"Monitor of {process}, started by {by}"[:200],
                )
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def stop(self, tenant: str, process: str, by: str) -> None:
        """Stop the Monitor at once, or behind the poll that it is in. It stays stopped until it is started by hand.

        Raises:
            StateError: it does not run.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await self._signal(tenant, process, contracts.STOP_SIGNAL, by)

    async def poll_now(self, tenant: str, process: str, by: str) -> None:
        """Let the Monitor poll, whether or not it is time. Raises as `stop`."""
        await self._signal(tenant, process, contracts.POLL_SIGNAL, by)

    async def describe(self, tenant: str, process: str) -> ProcessStanding:
        """What the engine knows of the process.

        Raises:
            UnreachableError: the engine cannot be reached.
        """
        return ProcessStanding(await self._life(tenant, process), await self._scheduled(tenant, process))

    async def declare(self, tenant: str, process: str, wanted: Schedule) -> Literal["scheduled", "unchanged", "kept"]:
        """See that the process has the schedule that it declares, unless an operator has set another: that is kept.

        Raises:
            InputError, UnreachableError: as `schedule`.
        """
        found = await self._scheduled(tenant, process)
        if found is not None and not found.declared:
            return "kept"
        if found is not None and found.declared == wanted.digest():
            return "unchanged"
        await self.schedule(tenant, process, wanted, declared=True)
        return "scheduled"

    async def schedule(self, tenant: str, process: str, wanted: Schedule, *, declared: bool = False) -> None:
        """Let the engine start the process by a schedule, instead of one that it may have. A pause stays.

        `declared`: it is the one that the process declares, and what an operator has set is over.

        Raises:
            InputError: the engine refuses it, for a zone that it does not know for example.
            UnreachableError: the engine cannot be reached.
        """
        await self._runs.agree()
        known = contracts.monitor_id(self._runs.task_queue, tenant, process)
        digest = wanted.digest() if declared else ""
        start = ProcessStart(tenant, process, known, self._histories.roll_over_events, digest)
        made = engine_schedule(start, self._runs.task_queue, wanted)

        def bring(current: ScheduleUpdateInput) -> ScheduleUpdate:
            made.state = current.description.schedule.state
            return ScheduleUpdate(made)

        try:
            try:
                await reached(self._engine.create_schedule(self._schedule_id(tenant, process), made))
            except ScheduleAlreadyRunningError:
                await reached(self._handle(tenant, process).update(bring))
        except FatalError as error:
            raise InputError(f"The schedule of process {process!r} is refused. {error}", field="schedule") from error

    async def unschedule(self, tenant: str, process: str) -> bool:
        """Take the schedule away; a Monitor that it has started goes on. False where there is none.

        Raises:
            UnreachableError: the engine cannot be reached.
        """
        try:
            await reached(self._handle(tenant, process).delete(rpc_timeout=CALL_TIMEOUT))
        except StateError:
            return False
        return True

    async def starts(self, tenant: str, process: str, after: datetime, until: datetime) -> list[datetime]:
        """The instants after `after` at which the schedule starts the process, as the engine reckons them, in UTC.

        There are none where it has no schedule.

        Raises:
            UnreachableError: the engine cannot be reached.
        """
        request = ListScheduleMatchingTimesRequest(
            namespace=self._engine.namespace,
            schedule_id=self._schedule_id(tenant, process),
            start_time=_stamp(after),
            end_time=_stamp(until),
        )
        service = self._engine.workflow_service
        found = await reached(service.list_schedule_matching_times(request, timeout=CALL_TIMEOUT))
        return [each.ToDatetime(UTC) for each in found.start_time]

    # ---- parts

    @property
    def _engine(self) -> Client:
        return self._runs.engine

    def _schedule_id(self, tenant: str, process: str) -> str:
        return schedule_id(self._runs.task_queue, tenant, process)

    async def _signal(self, tenant: str, process: str, name: str, by: str) -> None:
        await self._runs.agree()
        try:
            await reached(self._monitor(tenant, process).signal(name, Asked(by), rpc_timeout=CALL_TIMEOUT))
        except StateError as error:
            raise StateError(f"The Monitor of process {process!r} does not run. Start it first.") from error

    async def _life(self, tenant: str, process: str) -> MonitorLife | None:
        handle = self._monitor(tenant, process)
        found = await _if_there(handle.describe(rpc_timeout=CALL_TIMEOUT))
        if found is None:
            return None
        is_open = found.status is WorkflowExecutionStatus.RUNNING
        standing = await self._standing(handle) if is_open else None
        how = None if is_open or found.status is None else found.status.name
        return MonitorLife(is_open, found.start_time, found.close_time, how, standing)

    async def _standing(self, handle: WorkflowHandle[object, MonitorEnd]) -> MonitorStanding | None:
        query = handle.query(
            contracts.MONITOR_QUERY,
            result_type=MonitorStanding,
            reject_condition=QueryRejectCondition.NOT_OPEN,
            rpc_timeout=CALL_TIMEOUT,
        )
        try:
            return await reached(query)
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError, StateError, UnreachableError):
            return None  # the engine has just answered: it is the worker that cannot

    async def _scheduled(self, tenant: str, process: str) -> ScheduleStanding | None:
        found = await _if_there(self._handle(tenant, process).describe(rpc_timeout=CALL_TIMEOUT))
        if found is None:
            return None
        state = found.schedule.state
        declared = await self._declared(found.schedule.action)
        return ScheduleStanding(state.paused, state.note, tuple(found.info.next_action_times), declared)

    async def _declared(self, action: ScheduleAction) -> str:
        """What the schedule was made of; "" where nobody here can read it."""
        given = action.args if isinstance(action, ScheduleActionStartWorkflow) else ()
        payloads = [each for each in given if isinstance(each, Payload)]
        try:
            starts = await self._engine.data_converter.decode(payloads, [ProcessStart])
        except PayloadUnreadableError:
            return ""
        return next((start.declared for start in starts), "")

    def _monitor(self, tenant: str, process: str) -> WorkflowHandle[object, MonitorEnd]:
        return self._engine.get_workflow_handle(
            contracts.monitor_id(self._runs.task_queue, tenant, process), result_type=MonitorEnd
        )

    def _handle(self, tenant: str, process: str) -> ScheduleHandle:
        return self._engine.get_schedule_handle(self._schedule_id(tenant, process))


async def _if_there(call: Awaitable[Made]) -> Made | None:
    try:
        return await reached(call)
    except StateError:
        return None


def _stamp(at: datetime) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(at.astimezone(UTC))
    return made
