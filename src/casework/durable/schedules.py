"""Schedules of the engine that the project itself needs, and keeping them there while a worker works."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from casework.durable import contracts
from casework.errors import UnreachableError

log = logging.getLogger("casework.sweep")

SWEEP_ID = "casework-sweep"
SWEEP_EVERY = timedelta(seconds=30)
SWEEP_LIMIT = timedelta(minutes=10)
"""A sweep that no worker has taken by then is given up: on a queue that nobody serves they would stay for ever."""
CHECK_EVERY_S = 60.0


async def ensure_sweep(client: Client, task_queue: str) -> None:
    """See that the sweep of runs is scheduled, one for each queue; many workers may ask at once.

    One that is there is brought to what this release wants; whether it is paused is left to whoever paused it.

    Raises:
        UnreachableError: the namespace does not exist or may not be used, or the engine cannot be reached.
    """
    wanted = _sweep(task_queue)
    try:
        try:
            await client.create_schedule(sweep_id(task_queue), wanted)
        except ScheduleAlreadyRunningError:
            await _bring_up_to_date(client, task_queue, wanted)
    except RPCError as error:
        raise UnreachableError(
            f"Temporal does not take the schedule of the sweep ({error.status.name}: {error.message:.200}). Does the "
            f"namespace {client.namespace!r} exist, and may this key use it? Set TEMPORAL_NAMESPACE, or create it."
        ) from error


@asynccontextmanager
async def kept_sweep(client: Client, task_queue: str, every_s: float = CHECK_EVERY_S) -> AsyncIterator[None]:
    """The sweep is scheduled from now on, and is scheduled again should somebody delete it.

    Raises:
        UnreachableError: as `ensure_sweep`; only at the start.
    """
    await ensure_sweep(client, task_queue)
    keeping = asyncio.create_task(_keep(client, task_queue, every_s))
    try:
        yield
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


async def _keep(client: Client, task_queue: str, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await client.create_schedule(sweep_id(task_queue), _sweep(task_queue))
            log.warning("the schedule %s was gone and is there again", sweep_id(task_queue))
        except ScheduleAlreadyRunningError:
            continue
        except Exception as error:  # noqa: BLE001  # a worker does not end because the engine is away for a moment
            log.warning("whether the sweep is scheduled could not be seen: %s", error)


async def _bring_up_to_date(client: Client, task_queue: str, wanted: Schedule) -> None:
    handle = client.get_schedule_handle(sweep_id(task_queue))
    found = (await handle.describe()).schedule
    action = found.action
    same = (
        found.spec.intervals == wanted.spec.intervals
        and found.policy == wanted.policy
        and isinstance(action, ScheduleActionStartWorkflow)
        and (action.task_queue, action.execution_timeout) == (task_queue, SWEEP_LIMIT)
    )
    if same:
        return

    def bring(current: ScheduleUpdateInput) -> ScheduleUpdate:
        wanted.state = current.description.schedule.state
        return ScheduleUpdate(wanted)

    await handle.update(bring)


def sweep_id(task_queue: str) -> str:
    """Id of the schedule of a queue's sweep, and of the sweeps that it starts."""
    return f"{SWEEP_ID}-{task_queue}"


def _sweep(task_queue: str) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(
            contracts.SWEEP_WORKFLOW, id=sweep_id(task_queue), task_queue=task_queue, execution_timeout=SWEEP_LIMIT
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SWEEP_EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=SWEEP_EVERY),
    )
