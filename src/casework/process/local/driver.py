"""A project's processes in memory: Monitors that wake on an invented clock, and trays that are walked at once."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from dishka import Provider

from casework.errors import FatalError, NotFoundError
from casework.graph.problems import unknown
from casework.ids import NAMESPACE, derived_id
from casework.process.admission import admit_all
from casework.process.failures import Spot, error_entity
from casework.process.identities import claim_id, monitor_owner
from casework.process.injection import Injector, injector, users_of
from casework.process.lines import LOOP_RECORD, MONITOR, BusinessProcess, Line
from casework.process.local.calling import Agent, Reviewer, no_agent, no_reviewer
from casework.process.local.store import LocalStore, TraceRecord
from casework.process.local.tray import Hands, LocalTray
from casework.process.monitor_clock import MonitorState, Stop, next_wake, polled, wake
from casework.process.monitor_settings import MonitorConfig, effective
from casework.process.monitors import InputMonitorTask, MonitorTask, TransactionMonitorTask
from casework.process.policies import ErrorPolicy
from casework.process.statuses import DEFAULT_STATUSES, StatusSet
from casework.process.transactions import Transaction, begin

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
        self._made = 0

    async def __aenter__(self) -> LocalProject:
        """The project itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Release what the modules opened."""
        await self._injector.close()

    def add(self, status: str, data: Mapping[str, Any] | None = None, **more: Any) -> UUID:
        """Put a Transaction into the store in any status that there is; gives its id.

        Raises:
            ProcessDeclarationError: there is no such status.
        """
        self.statuses.check_known(status)
        uuid = more.pop("uuid", None) or self._new_id()
        self.store.put(
            Transaction(uuid=uuid, status=status, start_time=self.clock, data=dict(data or {}), **more),
            "",
            "add",
            self.clock,
        )
        return uuid

    async def run(self, name: str, config: MonitorConfig | None = None, *, polls: int | None = 1) -> MonitorEnd:
        """Run one process until its Monitor stops, at the latest after `polls` polls; None is no such bound.

        Raises:
            NotFoundError: there is no such process.
        """
        line = self.lines.get(name)
        if line is None:
            raise NotFoundError(f"Of processes, {unknown('process', name, self.lines)}")
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
        """Claim tray after tray until nothing waits, then walk each."""
        hands = self._hands()
        async with self._injector.made(line.process.monitor) as monitor:
            trays = await self._trays(line, monitor)
        for claim, claimed in trays:
            await LocalTray(hands, line, claim, claimed).to_end()
        return sum(len(claimed) for _, claimed in trays)

    async def _trays(self, line: Line, monitor: MonitorTask) -> list[tuple[UUID, list[Transaction]]]:
        name, by, size = line.process.name, monitor.monitor_class(), line.process.tray_size
        entered: list[Transaction] = []
        if isinstance(monitor, InputMonitorTask):
            entered = await self._taken_in(line, monitor)
        made: list[tuple[UUID, list[Transaction]]] = []
        self._polls[name] = self._polls.get(name, 0) + 1
        while True:
            claim = claim_id(monitor_owner("default", name), self._polls[name], len(made) + 1)
            if isinstance(monitor, TransactionMonitorTask):
                found = self.store.claim(monitor.status_to_monitor, monitor.status_to_set, claim, size)
            else:
                found, entered = [replace(each, claim_id=claim) for each in entered[:size]], entered[size:]
            if not found:
                return made
            for each in found:
                self.store.put(each, name, by, self.clock)
            made.append((claim, found))

    async def _taken_in(self, line: Line, monitor: InputMonitorTask[Any]) -> list[Transaction]:
        """A Transaction for each new entity; one that fails is recorded, and the rest goes on."""
        made: list[Transaction] = []
        for entity in await monitor.query_input_entities():
            uuid = self._new_id()
            try:
                made += await self._saved(monitor, entity, uuid)
            except Exception as error:  # noqa: BLE001  # one bad entity does not stop the rest
                self._bad_entity(line, uuid, error)
                await self._tell(line, monitor.reject_input_entity(entity, error))
            else:
                await self._tell(line, monitor.acknowledge_input_entity(entity))
        return made

    async def _saved(self, monitor: InputMonitorTask[Any], entity: Any, uuid: UUID) -> list[Transaction]:
        """The Transaction of an entity; none where its natural key has come before."""
        key = monitor.natural_key(entity)
        if key in self.store.keys:
            return []
        data = await monitor.save_input_entity(entity)
        fresh = begin(self.statuses, monitor.status_to_set, uuid=uuid, at=self.clock, data=data, natural_key=key)
        self.store.keys |= {key} if key is not None else set()
        return [fresh]

    async def _tell(self, line: Line, word: Awaitable[None]) -> None:
        """Tell the source; one that cannot be told gives the entity again, so that is recorded and no more."""
        try:
            await word
        except Exception as error:  # noqa: BLE001  # the rest goes on
            self._bad_entity(line, self._new_id(), error)

    def _bad_entity(self, line: Line, uuid: UUID, error: Exception) -> None:
        number = len(self.store.errors) + 1
        nobody = Transaction(uuid=uuid, status="", start_time=self.clock)
        name = line.process.name
        spot = Spot(name, MONITOR, derived_id(monitor_owner("default", name), f"entity.{number}"))
        times = {"started": self.clock, "failed": self.clock}
        self.store.errors.append(
            error_entity(error, nobody, spot, root=uuid, attempt=1, environment=self.environment, **times)
        )

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
