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

from casework.durable import contracts

SWEEP_ID = "casework-sweep"
SWEEP_EVERY = timedelta(seconds=30)


async def ensure_sweep(client: Client, task_queue: str) -> None:
    """See that the sweep of runs is scheduled; many workers may ask at once."""
    action = ScheduleActionStartWorkflow(contracts.SWEEP_WORKFLOW, id=SWEEP_ID, task_queue=task_queue)
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SWEEP_EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=SWEEP_EVERY),
    )
    try:
        await client.create_schedule(f"{SWEEP_ID}-{task_queue}", schedule)
    except ScheduleAlreadyRunningError:
        return
