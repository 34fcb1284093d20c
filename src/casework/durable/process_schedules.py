"""A process's `Schedule` as the engine's: field by field, with the process's one start as its action."""

from __future__ import annotations

from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)

from casework.durable import monitor_contracts as contracts
from casework.durable.monitor_contracts import ProcessStart
from casework.process import schedules


def schedule_id(task_queue: str, tenant: str, process: str) -> str:
    """The id of the schedule of a process, and the first part of the ids of what it starts."""
    return f"process/{task_queue}/{tenant}/{process}"


def engine_schedule(start: ProcessStart, task_queue: str, wanted: schedules.Schedule) -> Schedule:
    """What the engine is to keep."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            contracts.PROCESS_WORKFLOW,
            start,
            id=schedule_id(task_queue, start.tenant, start.process),
            task_queue=task_queue,
        ),
        spec=ScheduleSpec(
            cron_expressions=[each.strip() for each in wanted.cron],
            intervals=[] if wanted.every is None else [ScheduleIntervalSpec(wanted.every, wanted.offset)],
            jitter=wanted.jitter or None,
            time_zone_name=wanted.zone,
        ),
        policy=SchedulePolicy(
            overlap=ScheduleOverlapPolicy[wanted.overlap.name],
            catchup_window=wanted.catch_up,
        ),
    )
