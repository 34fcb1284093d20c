"""A Monitor: one Temporal workflow for each process and tenant, whose rounds are Jobs of a task tree.

It moves like this. A round looks at the row of the Monitor (a local activity, next to nothing), asks the pure clock
whether to poll or to stop, polls, and tells what came of it. It emits the loop record, unless the Monitor stops; the
Rules must take it back, else there is no further round. Between rounds the Monitor sleeps. A signal wakes it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from casework.durable import monitor_contracts as contracts
    from casework.durable import policies
    from casework.durable.monitor_contracts import (
        Asked,
        InForce,
        MonitorCarried,
        MonitorEnd,
        MonitorLook,
        MonitorPoll,
        MonitorSeen,
        MonitorStanding,
        MonitorStart,
        MonitorTell,
        MonitorTold,
        PollReport,
    )
    from casework.durable.workflows.failures import only_cancelled, root_failure
    from casework.durable.workflows.operations import activity_id
    from casework.durable.workflows.rolling import uncancel
    from casework.durable.workflows.shell import PASSING, is_unwinding
    from casework.errors import StoreUnavailableError
    from casework.process.lines import MONITOR
    from casework.process.monitor_clock import MonitorState, next_wake, polled, wake
    from casework.tasktree import Commander, Job, current_node, submit

Reply = TypeVar("Reply")
BY_RULE = "by_rule"
LOOK_LIMIT = timedelta(seconds=15)
POLL_LIMIT = timedelta(minutes=5)
POLL_PAUSES = RetryPolicy(
    initial_interval=timedelta(seconds=0.2), backoff_coefficient=3, maximum_interval=timedelta(seconds=60)
)
"""A poll is repeated until it is through: what it has claimed must get its trays."""


@workflow.defn(name=contracts.MONITOR_WORKFLOW)
class MonitorRun:
    """One life of the Monitor of a process."""

    @workflow.init
    def __init__(self, start: MonitorStart) -> None:
        carried = start.carried
        self.start = start
        self.state = MonitorState() if carried is None else carried.state
        self.rounds = 0 if carried is None else carried.rounds
        self.claimed = 0 if carried is None else carried.claimed
        self.stop = None if carried is None else carried.stop
        self.poll = None if carried is None else carried.poll
        self.in_force: InForce | None = None
        self._next_wake: datetime | None = None
        self._counters = None if carried is None else carried.counters

    @workflow.run
    async def run(self, start: MonitorStart) -> MonitorEnd:
        """Round after round, until it stops; the next part where the history gets long."""
        try:
            stopped = await self._live()
            if stopped is None:
                workflow.continue_as_new(replace(start, carried=self._carried()))
        except BaseException as error:
            if isinstance(error, PASSING) or is_unwinding():
                raise
            if only_cancelled(error):
                uncancel()
                await self._last_word("cancelled")
                raise asyncio.CancelledError from error
            await self._last_word("failed")
            raise ApplicationError(root_failure(error), type="MonitorFailedError", non_retryable=True) from error
        return MonitorEnd(stopped, self.state.completed_loops, self.rounds, self.claimed)

    async def _live(self) -> str | None:
        """Why it stops; None where it goes on in a new history."""
        tree = Commander(
            is_unwinding=is_unwinding, engine_errors=(asyncio.CancelledError,), keep="none", counters=self._counters
        )
        async with tree:
            while True:
                stopped: str | None = await submit(Round(self))
                if stopped is not None:
                    return stopped
                await self._sleep()
                if self._long():
                    self._counters = tree.export_counters()
                    return None

    def _carried(self) -> MonitorCarried:
        counters = {} if self._counters is None else self._counters
        return MonitorCarried(self.state, self.rounds, self.claimed, counters, self.stop, self.poll)

    def _long(self) -> bool:
        info = workflow.info()
        return info.get_current_history_length() >= self.start.roll_over_events or info.is_continue_as_new_suggested()

    async def _sleep(self) -> None:
        assert self.in_force is not None  # a round has looked
        now = workflow.now()
        self._next_wake = next_wake(self.in_force.config(), self.state, now)
        try:
            await workflow.wait_condition(
                lambda: self.stop is not None or self.poll is not None,
                timeout=max(self._next_wake - now, timedelta(0)),
                timeout_summary="sleeps until its next wake",
            )
        except TimeoutError:
            pass
        finally:
            self._next_wake = None

    async def _last_word(self, stopped: contracts.StopReason) -> None:
        """The end of a Monitor that did not come to it by itself; where it cannot be told, the engine shows it."""
        try:
            await self.tell(stopped=stopped, path=stopped)
        except Exception:  # noqa: BLE001  # it ends all the same
            workflow.logger.warning("the end of Monitor %s could not be written", workflow.info().workflow_id)

    # ---- what a round does

    async def look(self) -> MonitorSeen:
        """The flag in its row, and the configuration."""
        first = self.rounds == 1
        request = MonitorLook(self.start.tenant, self.start.process, first, self.start.by if first else "")
        seen = await self._local(contracts.MONITOR_WAKE, request, MonitorSeen, f"{current_node().path}.look")
        self.in_force = seen.in_force
        return seen

    async def emit(self) -> PollReport:
        """Poll."""
        request = MonitorPoll(self.start.tenant, self.start.process, self.life, self.state.completed_loops + 1)
        report: PollReport = await workflow.execute_activity(
            contracts.MONITOR_POLL,
            request,
            result_type=PollReport,
            activity_id=activity_id(f"{current_node().path}.poll"),
            start_to_close_timeout=POLL_LIMIT,
            heartbeat_timeout=policies.HEARTBEAT,
            retry_policy=POLL_PAUSES,
        )
        self.claimed += report.claimed
        return report

    async def tell(
        self, report: PollReport | None = None, stopped: str | None = None, path: str | None = None
    ) -> MonitorTold:
        """Write what the round came to; the loop record, where there is one, goes where the Rules send it."""
        request = MonitorTell(
            tenant=self.start.tenant,
            process=self.start.process,
            life=self.life,
            round=self.rounds,
            loops=self.state.completed_loops,
            at=workflow.now(),
            last_poll=self.state.last_poll,
            report=report,
            stopped=stopped,
            stop=self.stop,
        )
        return await self._local(contracts.MONITOR_TELL, request, MonitorTold, f"{path or current_node().path}.tell")

    @property
    def life(self) -> str:
        """The id of this life, the same in all its parts."""
        return workflow.info().first_execution_run_id

    async def _local(self, name: str, request: Any, reply: type[Reply], path: str) -> Reply:
        """A local activity, again and again while it is not refused for good."""
        pauses = 0
        while True:
            try:
                made: Reply = await workflow.execute_local_activity(
                    name,
                    request,
                    result_type=reply,
                    activity_id=activity_id(path if not pauses else f"{path}.{pauses}"),
                    start_to_close_timeout=LOOK_LIMIT,
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )
            except FailureError as error:  # of a local activity the engine does not wrap every error
                if is_cancelled_exception(error) or _for_good(error):
                    raise
                pause = policies.STORE_PATIENCE[min(pauses, len(policies.STORE_PATIENCE) - 1)]
                pauses += 1
                await workflow.sleep(pause, summary="waits for the database")
            else:
                return made

    # ---- what it can be told and asked

    @workflow.signal(name=contracts.STOP_SIGNAL)
    def stopped_by(self, asked: Asked) -> None:
        """Stop, at once if it sleeps. It stays stopped until a person starts it."""
        self.stop = self.stop or asked

    @workflow.signal(name=contracts.POLL_SIGNAL)
    def poll_now(self, asked: Asked) -> None:
        """Poll, whether or not it is time."""
        self.poll = asked

    @workflow.query(name=contracts.MONITOR_QUERY)
    def standing(self) -> MonitorStanding:
        """Where it stands."""
        return MonitorStanding(self.state, self.rounds, self.claimed, self.in_force, self._next_wake)


def _for_good(error: FailureError) -> bool:
    """Whether to do it again would end the same; a database that is away comes back."""
    told = error if isinstance(error, ApplicationError) else error.cause
    return isinstance(told, ApplicationError) and told.non_retryable and told.type != StoreUnavailableError.__name__


class Round(Job):
    """One round: a wake, and what follows from it. Its result is why the Monitor stops; None where it goes on."""

    def __init__(self, monitor: MonitorRun) -> None:
        super().__init__("round")
        self._monitor = monitor

    async def task(self) -> str | None:
        """Look, poll if it is time, tell."""
        monitor = self._monitor
        monitor.rounds += 1
        poll_asked, monitor.poll = monitor.poll is not None, None
        seen = await monitor.look()
        config, stop_asked = seen.in_force.config(), seen.stopped or monitor.stop is not None
        monitor.state, asked = wake(config, monitor.state, workflow.now(), stop_asked=stop_asked, poll_asked=poll_asked)
        if asked.stopped is not None:
            await monitor.tell(stopped=asked.stopped)
            return asked.stopped.value
        if not asked.poll:
            return None
        report = await monitor.emit()
        monitor.state, stopped = polled(config, monitor.state, workflow.now())
        told = await monitor.tell(report, stopped)
        if stopped is not None:
            return stopped.value
        return None if told.to == MONITOR else BY_RULE
