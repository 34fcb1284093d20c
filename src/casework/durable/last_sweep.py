"""What the engine knows of the sweep: whether its schedule is there, when it last ran and what it found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.service import RPCError, RPCStatusCode

from casework.durable.contracts import SweepReport
from casework.durable.in_hand import PATIENCE
from casework.durable.schedules import sweep_id
from casework.errors import UnreachableError

WHOLE_S = 3 * PATIENCE.total_seconds()
"""Longest time for all of it, in seconds."""
LOOKED_AT = 3
"""Newest sweeps of which one that has ended is looked for: the very newest may be under way."""


@dataclass(frozen=True)
class LastSweep:
    """`scheduled` False: there is no schedule. `at` None: it has not run yet. `failure`: why the last one failed."""

    scheduled: bool
    paused: bool = False
    every: timedelta | None = None
    at: datetime | None = None
    report: SweepReport | None = None
    failure: str | None = None


async def last_sweep(client: Client, task_queue: str) -> LastSweep:
    """The sweep of a queue, as the engine tells of it.

    Raises:
        UnreachableError: the engine does not answer.
    """
    handle = client.get_schedule_handle(sweep_id(task_queue))
    try:
        async with asyncio.timeout(WHOLE_S):  # a first call connects, and that no time-out of a call bounds
            found = await handle.describe(rpc_timeout=PATIENCE)
            return await _last(client, found)
    except (RPCError, RuntimeError, TimeoutError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            return LastSweep(scheduled=False)
        said = str(error)[:200] or "no answer in time"
        raise UnreachableError(f"Temporal does not tell of the sweep ({said}). Is it running?") from error


async def _last(client: Client, found: ScheduleDescription) -> LastSweep:
    intervals = found.schedule.spec.intervals
    every = intervals[0].every if intervals else None
    paused = found.schedule.state.paused
    for taken in reversed(found.info.recent_actions[-LOOKED_AT:]):
        assert isinstance(taken.action, ScheduleActionExecutionStartWorkflow)
        handle = client.get_workflow_handle(
            taken.action.workflow_id, run_id=taken.action.first_execution_run_id, result_type=SweepReport
        )
        described = await handle.describe(rpc_timeout=PATIENCE)
        if described.status is WorkflowExecutionStatus.RUNNING:
            continue
        try:
            report = await asyncio.wait_for(handle.result(), PATIENCE.total_seconds())
        except WorkflowFailureError as error:
            return LastSweep(True, paused, every, taken.started_at, failure=str(error.cause))
        return LastSweep(True, paused, every, taken.started_at, report)
    return LastSweep(True, paused, every)
