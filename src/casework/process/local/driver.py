"""A project's processes in memory: Monitors that wake on an invented clock, and trays that are walked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from dishka import Provider

from casework.errors import FatalError, NotFoundError
from casework.graph.problems import unknown
from casework.ids import NAMESPACE, derived_id
from casework.process.admission import admit_all
from casework.process.injection import Injector, injector, users_of
from casework.process.lines import LOOP_RECORD, MONITOR, BusinessProcess, Line
from casework.process.local.calling import Agent, Reviewer, no_agent, no_reviewer
from casework.process.local.emitting import LocalEmitter
from casework.process.local.store import LocalStore, TraceRecord
from casework.process.local.tray import Hands, LocalTray
from casework.process.monitor_clock import MonitorState, Stop, next_wake, polled, wake
from casework.process.monitor_settings import MonitorConfig, effective
from casework.process.policies import ErrorPolicy
from casework.process.statuses import DEFAULT_STATUSES, StatusSet
from casework.process.transactions import Transaction

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""When the invented clock starts, unless another instant is given."""


@dataclass(frozen=True, slots=True)
class MonitorEnd:
    """How a Monitor's life ended: its state, its rounds, and whether it stopped or its loop record led elsewhere."""

    state: MonitorState
    rounds: int
    at: datetime
    stopped: Stop | None
    claimed: int


@dataclass
class LocalProject:
    """Processes with what their Tasks ask for. Close it when done; `async with` does.

    `clock` is where the invented time stands; it moves by the sleeps of Monitors alone.
    """

    processes: Iterable[BusinessProcess]
    modules: Iterable[Provider] = ()
    statuses: StatusSet = DEFAULT_STATUSES
    errors: ErrorPolicy | None = None
    agent: Agent = no_agent
    reviewer: Reviewer = no_reviewer
    store: LocalStore = field(default_factory=LocalStore)
    clock: datetime = EPOCH
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables whose secrets are struck from recorded errors."""

    def __post_init__(self) -> None:
        self.lines: dict[str, Line] = admit_all(self.processes, self.statuses)
        self._injector: Injector = injector(users_of(self.lines.values()), self.modules)
        self._polls: dict[str, int] = {}
        self._waiting: list[LocalTray] = []
        self._made = 0

    async def __aenter__(self) -> LocalProject:
        """The project itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Release what the modules opened."""
        await self._injector.close()

    def add(self, status: str, data: Mapping[str, Any] | None = None, **more: Any) -> UUID:
        """Put a Transaction into the store in any status that there is; gives its id.

        `more` are its further fields, and `business_key`, what limits of concurrency count by.

        Raises:
            ProcessDeclarationError: there is no such status.
        """
        self.statuses.check_known(status)
        business_key = more.pop("business_key", None)
        uuid = more.pop("uuid", None) or self._new_id()
        self.store.put(
            Transaction(uuid=uuid, status=status, start_time=self.clock, data=dict(data or {}), **more),
            "",
            "add",
            self.clock,
        )
        self.store.business_keys |= {} if business_key is None else {uuid: business_key}
        return uuid

    async def run(self, name: str, config: MonitorConfig | None = None, *, polls: int | None = 1) -> MonitorEnd:
        """Run one process until its Monitor stops, at the latest after `polls` polls; None is no such bound.

        Raises:
            NotFoundError: there is no such process.
        """
        line = self.lines.get(name)
        if line is None:
            raise NotFoundError(f"In this application {unknown('process', name, self.lines)}")
        return await self._live(line, config or effective(line.process.monitor.monitor_class()).config, polls)

    async def settle(self, most: int = 100) -> int:
        """Poll all processes in turn until nothing moves any more; gives the number of turns.

        Raises:
            FatalError: it still moves after `most` turns.
        """
        for turn in range(most):
            before = len(self.store.stages)
            for name in self.lines:
                await self.run(name)
            if len(self.store.stages) == before:
                return turn
        raise FatalError(f"The processes have not come to rest in {most} turns. Look at the log of stages.")

    async def _live(self, line: Line, config: MonitorConfig, polls: int | None) -> MonitorEnd:
        state, rounds, claimed = MonitorState(), 0, 0
        while True:
            rounds += 1
            state, asked = wake(config, state, self.clock)
            stopped = asked.stopped
            if asked.poll:
                claimed += await self._poll(line)
                state, stopped = polled(config, state, self.clock)
            if stopped is not None or not self._repeats(line):
                break
            if polls is not None and state.completed_loops >= polls:
                break
            self.clock = next_wake(config, state, self.clock)
        return MonitorEnd(state, rounds, self.clock, stopped, claimed)

    def _repeats(self, line: Line) -> bool:
        """Emit the loop record; whether the Rules take it back to the Monitor."""
        to = line.route(MONITOR, LOOP_RECORD)
        self.store.trace.append(TraceRecord(line.process.name, MONITOR, to, None))
        return to == MONITOR

    async def _poll(self, line: Line) -> int:
        """Emit what is there, then walk each tray. What the Monitor itself raises ends this poll alone."""
        hands, name, monitor = self._hands(), line.process.name, line.process.monitor
        self._polls[name] = self._polls.get(name, 0) + 1
        emitter = LocalEmitter(line, self.store, self._polls[name], self.clock, self._new_id, dict(self.environment))
        assert monitor.runner_class is not None  # the line was admitted
        async with self._injector.made(monitor) as task, self._injector.made(monitor.runner_class) as runner:
            try:
                await runner.poll(task, emitter)
            except Exception as error:  # noqa: BLE001  # the next poll may go well
                await emitter.refuse(None, error)
        for tray in emitter.trays:
            claim = tray[0].claim_id
            assert claim is not None
            self._waiting.append(LocalTray(hands, line, claim, tray))
        await self._walk()
        return sum(map(len, emitter.trays))

    async def _walk(self) -> None:
        """Walk all trays, in the order of their claims, until none goes on; those that wait for others stay.

        A task may run a process itself: the trays that are being walked are not to be found meanwhile.
        """
        trays, self._waiting = self._waiting, []
        goes_on = True
        while goes_on:
            waiting = [tray for tray in trays if not await tray.walk()]
            goes_on, trays = bool(waiting) and len(waiting) < len(trays), waiting
        self._waiting += trays

    def _new_id(self) -> UUID:
        self._made += 1
        return derived_id(NAMESPACE, f"local/transaction.{self._made}")

    def _hands(self) -> Hands:
        return Hands(
            self.store,
            self._injector,
            self.lines,
            self.errors,
            self.agent,
            self.reviewer,
            lambda: self.clock,
            self.environment,
        )
