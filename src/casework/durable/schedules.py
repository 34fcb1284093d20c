"""Schedules of the engine that the project itself needs, and keeping them there while a worker works."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from casework.durable import canary, contracts
from casework.durable.beside import beside
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
        SettingsError: this worker cannot read what the others write.
        UnreachableError: the namespace does not exist or may not be used, or the engine cannot be reached.
    """
    try:
        if await _is_there(client, task_queue):
            return
        with contextlib.suppress(ScheduleAlreadyRunningError):
            await client.create_schedule(sweep_id(task_queue), _sweep(task_queue, await canary.left(client)))
            return
        await _is_there(client, task_queue)
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
    async with beside(_keep(client, task_queue, every_s)):
        yield


async def _keep(client: Client, task_queue: str, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            if await _is_there(client, task_queue):
                continue
            await client.create_schedule(sweep_id(task_queue), _sweep(task_queue, await canary.left(client)))
            log.warning("the schedule %s was gone and is there again", sweep_id(task_queue))
        except ScheduleAlreadyRunningError:
            continue
        except Exception as error:  # noqa: BLE001  # a worker does not end because the engine is away for a moment
            log.warning("whether the sweep is scheduled could not be seen: %s", error)


async def _is_there(client: Client, task_queue: str) -> bool:
    """Whether the schedule is there; then it is as this release wants it, and what its workers write can be read."""
    handle = client.get_schedule_handle(sweep_id(task_queue))
    try:
        found = (await handle.describe()).schedule
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    memo = found.action.memo if isinstance(found.action, ScheduleActionStartWorkflow) else None
    fresh = await canary.check(client, memo)
    if not fresh or not _same(found, task_queue):
        await _bring_up_to_date(handle, _sweep(task_queue, await canary.left(client)))
    return True


def _same(found: Schedule, task_queue: str) -> bool:
    wanted, action = _sweep(task_queue, {}), found.action
    return (
        found.spec.intervals == wanted.spec.intervals
        and found.policy == wanted.policy
        and isinstance(action, ScheduleActionStartWorkflow)
        and (action.task_queue, action.execution_timeout) == (task_queue, SWEEP_LIMIT)
    )


async def _bring_up_to_date(handle: ScheduleHandle, wanted: Schedule) -> None:
    def bring(current: ScheduleUpdateInput) -> ScheduleUpdate:
        wanted.state = current.description.schedule.state
        return ScheduleUpdate(wanted)

    await handle.update(bring)


def sweep_id(task_queue: str) -> str:
    """Id of the schedule of a queue's sweep, and of the sweeps that it starts."""
    return f"{SWEEP_ID}-{task_queue}"


def _sweep(task_queue: str, memo: Mapping[str, Payload]) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(
            contracts.SWEEP_WORKFLOW,
            id=sweep_id(task_queue),
            task_queue=task_queue,
            execution_timeout=SWEEP_LIMIT,
            memo=memo,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SWEEP_EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=SWEEP_EVERY),
    )
