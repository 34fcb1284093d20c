"""Tasks and processes in memory, driven from plain test functions, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID, uuid4

from casework.app import App
from casework.errors import StateError
from casework.process.declaring import spec_of
from casework.process.failures import ErrorEntity
from casework.process.lines import BusinessProcess
from casework.process.local import LocalProject, LocalStore, MonitorEnd, run_task
from casework.process.local.calling import Agent, Reviewer, no_agent
from casework.process.local.driver import EPOCH
from casework.process.monitor_settings import MonitorConfig
from casework.process.policies import ErrorPolicy
from casework.process.statuses import DEFAULT_STATUSES, ERROR_IN_PROGRESS, StatusSet
from casework.process.tasks import Kind, Task
from casework.process.transactions import Transaction
from casework.process.working import Worked

if TYPE_CHECKING:
    from dishka import Provider

    from casework.testing.answers import ModelScript, ScriptedReviewer
    from casework.testing.databases import Store

Result = TypeVar("Result")


@dataclass
class InventedClock:
    """Where time stands in a test. It moves when Monitors sleep, and when the test skips some."""

    now: datetime = EPOCH

    def skip(self, by: timedelta | None = None, **parts: float) -> datetime:
        """Let time pass: a timedelta, or its parts as in `skip(hours=8)`. Gives where it stands then."""
        self.now += timedelta(**parts) if by is None else by
        return self.now


class TestLoop:
    """An event loop of one test, for plain test functions."""

    __test__ = False  # not a class of tests

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._closing: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` to its end.

        Raises:
            StateError: the test is a coroutine itself, and its loop runs.
        """
        if _loop_runs():
            work.close()
            raise StateError(
                "This fixture is for plain test functions: write `def test_...`. In an `async def`, await "
                "`casework.process.local.run_task` and LocalProject."
            )
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        return self._runner.run(work)

    def at_end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let `close` run when the test is over; what was given last comes first."""
        self._closing.append(close)

    def close(self) -> None:
        """End what was opened in it, then the loop."""
        try:
            while self._closing:
                self.run(self._closing.pop()())
        finally:
            if self._runner is not None:
                self._runner.close()


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@dataclass(frozen=True)
class TaskFixture:
    """Runs one Task; what `casework_task` gives."""

    loop: TestLoop
    clock: InventedClock
    model: ModelScript
    reviewer: ScriptedReviewer

    def __call__(
        self,
        cls: type[Task],
        given: Mapping[str, Any] | Transaction | None = None,
        *,
        modules: Iterable[Provider] = (),
        app: App | None = None,
        status: str | None = None,
        statuses: StatusSet | None = None,
        attempt: int = 1,
        children: Sequence[Transaction] = (),
        errors: Sequence[ErrorEntity] = (),
        agent: Agent | None = None,
        reviewer: Reviewer | None = None,
        store: Store | None = None,
    ) -> Worked:
        """Run the Task `cls` on a Transaction, or on a new one with the data `given`.

        What its constructor asks for comes from `modules`, then from those of `app`, whose workflows also run for an
        agent task, with the scripted model. Without `agent` and `reviewer` the scripted ones answer. With `store` it
        has a transaction of that database, committed where the Task ends well.

        Raises:
            ProcessDeclarationError: the class is no Task, or a provider is missing for its constructor.
            Exception: whatever the Task raises, as it is.
        """
        app = app or App()
        statuses = statuses or app.statuses
        transaction = given if isinstance(given, Transaction) else self._new(cls, given or {}, status, statuses)
        more: dict[str, Any] = {
            "modules": (*app.modules, *modules),
            "statuses": statuses,
            "attempt": attempt,
            "children": children,
            "errors": errors,
            "agent": agent or self.model.agent(app, self.reviewer),
            "reviewer": reviewer or self.reviewer,
        }
        return self.loop.run(_in_store(store, cls, transaction, more))

    def _new(self, cls: type[Task], data: Mapping[str, Any], status: str | None, statuses: StatusSet) -> Transaction:
        default = ERROR_IN_PROGRESS if spec_of(cls).kind is Kind.ERROR else statuses.working[0]
        statuses.check_known(status or default)
        return Transaction(uuid=uuid4(), status=status or default, start_time=self.clock.now, data=dict(data))


async def _in_store(store: Store | None, cls: type[Task], transaction: Transaction, more: Mapping[str, Any]) -> Worked:
    if store is None:
        return await run_task(cls, transaction, **more)
    from casework.store.lent import lent_alone  # noqa: PLC0415  # the driver is not needed where there is no store

    async with await store.open() as database, lent_alone(database) as connection:
        return await run_task(cls, transaction, connection=connection, **more)


class Project:
    """A project's processes in memory, on the clock of the test; what `casework_project` gives."""

    def __init__(self, local: LocalProject, loop: TestLoop, clock: InventedClock) -> None:
        self.local = local
        self._loop = loop
        self._clock = clock

    @property
    def store(self) -> LocalStore:
        """Transactions, errors, the log of stages and the trace."""
        return self.local.store

    def __getitem__(self, uuid: UUID) -> Transaction:
        """The Transaction as it is now."""
        return self.store.transactions[uuid]

    def passed(self, uuid: UUID) -> Transaction:
        """The Transaction as it is now, which has not failed.

        Raises:
            AssertionError: it has an error; says what was recorded.
        """
        transaction = self[uuid]
        if transaction.in_error or transaction.status_before_error is not None:
            found = "\n".join(f"{each.task}: {each.full}" for each in self.store.errors_of(transaction))
            raise AssertionError(f"Transaction {uuid} is {transaction.status}:\n{found}")
        return transaction

    def add(self, status: str, data: Mapping[str, Any] | None = None, **more: Any) -> UUID:
        """Put a Transaction into the store in any status that there is; `more` are further fields. Gives its id.

        Raises:
            ProcessDeclarationError: there is no such status.
        """
        self.local.clock = self._clock.now
        return self.local.add(status, data, **more)

    def run(self, name: str, config: MonitorConfig | None = None, *, polls: int | None = 1) -> MonitorEnd:
        """Run one process until its Monitor stops, at the latest after `polls` polls; None is no such bound.

        Raises:
            NotFoundError: there is no such process.
        """
        return self._timed(self.local.run(name, config, polls=polls))

    def settle(self, most: int = 100) -> int:
        """Poll all processes in turn until nothing moves any more; gives the number of turns.

        Raises:
            FatalError: it still moves after `most` turns.
        """
        return self._timed(self.local.settle(most))

    def _timed(self, work: Coroutine[Any, Any, Result]) -> Result:
        self.local.clock = self._clock.now
        try:
            return self._loop.run(work)
        finally:
            self._clock.now = self.local.clock


@dataclass(frozen=True)
class ProjectFixture:
    """Makes projects, and closes them at the end of the test."""

    loop: TestLoop
    clock: InventedClock
    model: ModelScript
    reviewer: ScriptedReviewer

    def __call__(
        self,
        of: App | BusinessProcess | Iterable[BusinessProcess],
        *,
        modules: Iterable[Provider] = (),
        statuses: StatusSet | None = None,
        errors: ErrorPolicy | None = None,
        agent: Agent | None = None,
        reviewer: Reviewer | None = None,
    ) -> Project:
        """The processes of an App, or those given. `modules` go before the App's where both provide a type.

        Without `agent` the workflows of an App run with the scripted model; without `reviewer` the scripted one
        decides.

        Raises:
            ProcessDeclarationError: a process is refused, or a provider is missing.
        """
        app = of if isinstance(of, App) else None
        processes = of.processes if isinstance(of, App) else (of,) if isinstance(of, BusinessProcess) else tuple(of)
        local = LocalProject(
            processes,
            modules=(*(app.modules if app else ()), *modules),
            statuses=statuses or (app.statuses if app else DEFAULT_STATUSES),
            errors=errors or (app.errors if app else None),
            agent=agent or (self.model.agent(app, self.reviewer) if app else no_agent),
            reviewer=reviewer or self.reviewer,
            clock=self.clock.now,
        )
        self.loop.at_end(local.__aexit__)
        return Project(local, self.loop, self.clock)
