"""A Monitor whose activities are played, on a test server that skips time: its clock alone is tried."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from casework.durable import monitor_contracts as contracts
from casework.durable.monitor_contracts import (
    InForce,
    MonitorEnd,
    MonitorLook,
    MonitorPoll,
    MonitorSeen,
    MonitorStart,
    MonitorTell,
    MonitorTold,
    PollReport,
)
from casework.durable.worker import workflow_runner
from casework.durable.workflows.monitor import MonitorRun
from casework.durable.workflows.process_start import ProcessRun

QUEUE = "clocked"
MS = timedelta(milliseconds=1)


@dataclass
class Played:
    """The activities of a Monitor, played: each is noted with the engine's time."""

    in_force: InForce
    to: str = "monitor"
    """Where the loop record goes."""
    stopped: Callable[[int], bool] = lambda _look: False
    away: int = 0
    """So many looks fail, as the database is away."""
    looks: list[MonitorLook] = field(default_factory=list)
    polls: list[MonitorPoll] = field(default_factory=list)
    told: list[MonitorTell] = field(default_factory=list)

    @activity.defn(name=contracts.MONITOR_WAKE)
    async def look(self, request: MonitorLook) -> MonitorSeen:
        if self.away:
            self.away -= 1
            raise ApplicationError("away", type="StoreUnavailableError", non_retryable=True)
        self.looks.append(request)
        return MonitorSeen(self.stopped(len(self.looks)), self.in_force)

    @activity.defn(name=contracts.MONITOR_POLL)
    async def poll(self, request: MonitorPoll) -> PollReport:
        self.polls.append(request)
        return PollReport(claimed=2, trays=1)

    @activity.defn(name=contracts.MONITOR_TELL)
    async def tell(self, request: MonitorTell) -> MonitorTold:
        self.told.append(request)
        return MonitorTold(None if request.stopped is not None else self.to)

    @property
    def polled_at(self) -> list[datetime]:
        """When each poll began, by the workflow's clock."""
        return [each.last_poll for each in self.told if each.report is not None and each.last_poll is not None]


def in_force(polling: timedelta, sleep: timedelta, **limits: Any) -> InForce:
    return InForce(polling // MS, sleep // MS, **limits)


@asynccontextmanager
async def working(env: WorkflowEnvironment, played: Played) -> AsyncIterator[None]:
    """A worker whose activities are played."""
    async with Worker(
        env.client,
        task_queue=QUEUE,
        workflows=[MonitorRun, ProcessRun],
        activities=[played.look, played.poll, played.tell],
        workflow_runner=workflow_runner(),
        max_cached_workflows=10,
    ):
        yield


async def started(env: WorkflowEnvironment, start: MonitorStart) -> WorkflowHandle[Any, MonitorEnd]:
    """The Monitor, started."""
    return await env.client.start_workflow(
        contracts.MONITOR_WORKFLOW,
        start,
        id=contracts.monitor_id(QUEUE, start.tenant, start.process),
        task_queue=QUEUE,
        result_type=MonitorEnd,
    )
