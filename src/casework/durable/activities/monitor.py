"""The activities of Monitors: to look at their rows, to poll, and to tell what a round came to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from casework.durable import monitor_contracts as contracts
from casework.durable.activities.emitting import Start, StoreEmitter
from casework.durable.activities.operation import operation
from casework.durable.activities.services import Services
from casework.durable.monitor_contracts import (
    InForce,
    MonitorLook,
    MonitorPoll,
    MonitorSeen,
    MonitorTell,
    MonitorTold,
    PollReport,
)
from casework.durable.trays import start_tray, tray_start
from casework.errors import FatalError, StoreUnavailableError
from casework.graph.problems import unknown
from casework.process.lines import LOOP_RECORD, MONITOR, Line
from casework.process.monitor_settings import SLEEP_FLOORS, effective
from casework.process.transactions import Transaction
from casework.store.processes import monitors
from casework.store.processes.monitors import RoundRow


class MonitorActivity:
    """`casework.monitor_wake`, `casework.monitor_poll` and `casework.monitor_tell`."""

    def __init__(self, services: Services, client: Client) -> None:
        self._services = services
        self._client = client

    def all(self) -> tuple[Callable[..., Any], ...]:
        """What a worker registers."""
        return self.look, self.poll, self.tell

    @activity.defn(name=contracts.MONITOR_WAKE)
    @operation
    async def look(self, request: MonitorLook) -> MonitorSeen:
        """The flag in the Monitor's row, and its configuration as it is in force now.

        Raises:
            FatalError: the application has no such process.
            StoreUnavailableError: the database cannot be reached.
        """
        name = self._line(request.process).process.monitor.monitor_class()
        async with self._services.db.transaction() as conn:
            if request.starts:
                await monitors.ensure(conn, request.tenant, request.process, datetime.now(UTC))
                if request.by:
                    await monitors.set_stopped(conn, request.tenant, request.process, False)
            stopped = await monitors.stopped(conn, request.tenant, request.process)
            row = await monitors.configuration(conn, request.tenant, name)
        floor = SLEEP_FLOORS[self._services.settings.processes.sleep_floor]
        found = effective(name, row=row, json=self._services.monitors, floor=floor)
        return MonitorSeen(stopped, InForce.of(found))

    @activity.defn(name=contracts.MONITOR_POLL)
    @operation
    async def poll(self, request: MonitorPoll) -> PollReport:
        """Emit what is there now, and start the trays. Repeated, it starts what it had claimed and goes on.

        Raises:
            FatalError: the application has no such process.
            RetryableError: the database or the engine cannot be reached.
        """
        try:
            return await self._polled(request)
        except StoreUnavailableError as error:
            # The engine repeats a poll for as long as it takes, where a step of a run would wait in its workflow.
            raise ApplicationError(str(error), type=type(error).__name__) from None

    async def _polled(self, request: MonitorPoll) -> PollReport:
        line, made = self._line(request.process), self._services.injector.made
        monitor_class = line.process.monitor
        assert monitor_class.runner_class is not None  # the line was admitted
        emitter = StoreEmitter(self._services.db, line, request, activity.info().attempt, self._starter(line))
        async with emitter, made(monitor_class) as monitor, made(monitor_class.runner_class) as runner:
            try:
                await runner.poll(monitor, emitter)
            except Exception as error:  # noqa: BLE001  # whatever a Monitor raises ends this poll alone
                await emitter.failed(error)
        return emitter.report

    def _starter(self, line: Line) -> Start:
        temporal = self._services.settings.temporal

        async def start(tray: list[Transaction]) -> None:
            made = tray_start(line, tray, self._services.settings.histories)
            await start_tray(self._client, made, temporal.task_queue)

        return start

    @activity.defn(name=contracts.MONITOR_TELL)
    @operation
    async def tell(self, request: MonitorTell) -> MonitorTold:
        """Write what a round came to. The loop record goes where the Rules send it; a Monitor that stops emits none.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """
        to, stopped = None, request.stopped
        if stopped is None:
            to = self._line(request.process).route(MONITOR, LOOP_RECORD)
            stopped = None if to == MONITOR else "by_rule"
        report = request.report or PollReport()
        row = RoundRow(
            monitor_class=self._class(request.process),
            life=UUID(request.life),
            round=request.round,
            polled=request.report is not None,
            at=request.at,
            claimed=report.claimed,
            trays=report.trays,
            taken_in=report.taken_in,
            repeated=report.repeated,
            bad=report.bad,
            failure=report.failure,
            loop_record=to is not None,
            stopped=stopped,
        )
        async with self._services.db.transaction() as conn:
            await monitors.told(
                conn, request.tenant, request.process, loops=request.loops, last_poll=request.last_poll, row=row
            )
            if request.stop is not None and request.stopped is not None:
                await monitors.set_stopped(conn, request.tenant, request.process, True)
        return MonitorTold(to)

    def _class(self, process: str) -> str:
        """The Monitor's class; a process that the application does not have any more has none."""
        line = self._services.lines.get(process)
        return "" if line is None else line.process.monitor.monitor_class()

    def _line(self, process: str) -> Line:
        lines = self._services.lines
        if process not in lines:
            raise FatalError(f"Of processes, {unknown('process', process, lines)}")
        return lines[process]
