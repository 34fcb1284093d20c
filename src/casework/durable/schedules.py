"""Schedules of the engine that the project itself needs."""

from __future__ import annotations

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
)
from temporalio.service import RPCError

from casework.durable import contracts
from casework.errors import UnreachableError

SWEEP_ID = "casework-sweep"
SWEEP_EVERY = timedelta(seconds=30)


async def ensure_sweep(client: Client, task_queue: str) -> None:
    """See that the sweep of runs is scheduled, one for each queue; many workers may ask at once.

    Raises:
        UnreachableError: the namespace does not exist or may not be used, or the engine cannot be reached.
    """
    action = ScheduleActionStartWorkflow(contracts.SWEEP_WORKFLOW, id=f"{SWEEP_ID}-{task_queue}", task_queue=task_queue)
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SWEEP_EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=SWEEP_EVERY),
    )
    try:
        await client.create_schedule(f"{SWEEP_ID}-{task_queue}", schedule)
    except ScheduleAlreadyRunningError:
        return
    except RPCError as error:
        raise UnreachableError(
            f"Temporal does not take the schedule of the sweep ({error.status.name}: {error.message:.200}). Does the "
            f"namespace {client.namespace!r} exist, and may this key use it? Set TEMPORAL_NAMESPACE, or create it."
        ) from error
