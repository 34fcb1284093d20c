"""What every station of a tray does alike: who may be worked on, what is told, and what becomes of a failure.

It moves like this. A station takes one Transaction at a time, whatever becomes of the others. It begins the step in
the ledger, which locks the Transaction and says whether it still is what the tray takes it for; it lets the Task work;
and it writes the Transaction, the step and whatever else came of it in one database transaction. A failure is the
Transaction's: it is written in the same way. Only what the platform itself cannot do fails the activity.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from casework.durable.activities.services import Services
from casework.durable.process_contracts import AT_ONCE, Outcome, TrayWork, apart_ms
from casework.errors import ExpressionError, ProcessDeclarationError
from casework.process.declaring import TaskSpec
from casework.process.failures import ErrorEntity, Spot, error_entity
from casework.process.identities import step_key
from casework.process.lines import Line, record_of
from casework.process.policies import ErrorPolicy, Next, OnError, nearest
from casework.process.statuses import IN_ERROR
from casework.process.tasks import JoinTask, TaskContext
from casework.process.transactions import Transaction, failed
from casework.process.working import Worked
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep
from casework.values import Plain

CHANGED = "its status or claim was changed from outside the tray"
_TAKES: dict[bool, Literal["none", "siblings"]] = {False: "none", True: "siblings"}


@dataclass(frozen=True, slots=True)
class Item:
    """A Transaction at a station, and the status that the tray takes it for."""

    uuid: UUID
    status: str


class Station(ABC):
    """A station's work on Transactions, one by one."""

    def __init__(self, services: Services, work: TrayWork, line: Line | None, now: Callable[[], datetime]) -> None:
        self.services = services
        self.asked = work
        self.line = line
        self.now = now
        self.spec: TaskSpec | None = None if line is None else line.specs.get(work.station)

    @abstractmethod
    async def work(self, item: Item) -> Outcome:
        """Do the work on one Transaction.

        Raises:
            StoreUnavailableError: the database cannot be reached; all is as if nothing had been done.
        """

    async def together(self, items: Sequence[Item]) -> dict[Item, Outcome]:  # noqa: ARG002  # most do nothing so
        """Do the work on as many as can be done by the same statements; `work` does it on the others.

        Raises:
            StoreUnavailableError: as `work`.
        """
        return {}

    @property
    def policy(self) -> ErrorPolicy:
        """The error policy that counts here."""
        own = None if self.spec is None else self.spec.errors
        return nearest([own, None if self.line is None else self.line.process.errors, self.services.app.errors])

    @property
    def takes_along(self) -> bool:
        """Whether the failure of one here may end others of the tray: by its policy, or by that of what is given up."""
        line = nearest([None if self.line is None else self.line.process.errors, self.services.app.errors])
        return any(each.siblings or each.on_error is OnError.FAIL_FAST for each in (self.policy, line))

    @property
    def limit_ms(self) -> int | None:
        """The task's limit, where it was sent as one that has none: then it is to come again, in its own queue."""
        rate = None if self.spec is None or not self.asked.unlimited else self.spec.max_per_second
        return None if rate is None else apart_ms(rate)

    def not_ours(self, item: Item) -> Outcome | None:
        """Said of one that has an error, where this line does not handle errors."""
        if item.status in IN_ERROR and (self.line is None or not self.line.handles_errors):
            return Outcome("left", (item.uuid,), item.status, reason=f"it is {item.status}, and not this line's")
        return None

    def step(self, item: Item) -> TaskStep:
        """The step in the ledger: this visit's, for every attempt."""
        assert self.spec is not None
        return TaskStep(
            tenant=self.asked.tenant,
            claim_id=self.asked.claim_id,
            transaction=item.uuid,
            status=item.status,
            process=self.asked.process,
            task=self.spec.name,
            path=self.asked.path,
            kind=self.spec.kind,
            version=self.spec.version,
            work_attempt=self.asked.attempt,
        )

    def context(self, step: TaskStep, begun: Begun, at: datetime, connection: Any = None) -> TaskContext:
        """What the Task knows about the call."""
        assert begun.attempt is not None
        return TaskContext(step.process, step.path, str(step.step_id), begun.attempt, at, connection)

    def placed(self, transaction: Transaction) -> Transaction:
        """The Transaction at this task."""
        skip = None if transaction.skip_until == self.asked.station else transaction.skip_until
        return replace(transaction, process=self.asked.process, task=self.asked.station, skip_until=skip)

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """The time that one Transaction may take here.

        Raises:
            TimeoutError: it is over.
        """
        assert self.spec is not None
        limit = asyncio.timeout(self.spec.timeout)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            told = f"Task {self.spec.name!r} took longer than its {self.spec.timeout:g} s for one Transaction. "
            raise TimeoutError(told + "Raise its `timeout`, or let it do less.") from error

    def onward(self, transaction: Transaction) -> str:
        """Where the Rules send it; "" where none holds, and the next station of the tray's line follows.

        Raises:
            ExpressionError, ProcessDeclarationError: they cannot tell.
        """
        assert self.line is not None
        return self.line.ruled(self.asked.station, record_of(transaction)) or ""

    def done(self, step: TaskStep, begun: Begun, made: Worked, at: datetime) -> tuple[Outcome, TaskEnd]:
        """How the step ends with what the Task made of the Transaction. One that is terminal has left the line.

        Raises:
            ExpressionError, ProcessDeclarationError: as `onward`.
        """
        assert begun.transaction is not None
        after = made.transaction
        if after.end_time is not None:
            after = replace(after, claim_id=None)
            outcome = Outcome("left", (after.uuid,), after.status, held=False, reason=f"it is {after.status}")
        else:
            children = tuple(each.uuid for each in made.children)
            kind: Literal["parted", "passed"] = "parted" if children else "passed"
            outcome = Outcome(kind, (after.uuid,), after.status, to=self.onward(after), children=children)
        end = TaskEnd(
            step=step,
            attempt=begun.attempt or 0,
            before=begun.transaction,
            after=after,
            by=step.task,
            at=at,
            result=kept(outcome),
            children=made.children,
            arrived=self.spec is not None and issubclass(self.spec.cls, JoinTask),
        )
        return outcome, end

    def entity(self, before: Transaction, error: BaseException, root: UUID, started: datetime) -> ErrorEntity:
        """What is recorded of a failure."""
        placed = self.placed(before)
        step = step_key(self.asked.claim_id, self.asked.path, before.uuid)
        spot = Spot(self.asked.process, placed.task or self.asked.station, step)
        return error_entity(
            error,
            placed,
            spot,
            root=root,
            attempt=self.asked.attempt,
            started=started,
            failed=self.now(),
            environment=os.environ,
        )

    def verdict(self, before: Transaction, error: BaseException, entity: ErrorEntity) -> tuple[Outcome, Transaction]:
        """What follows a failure by the policy, and the Transaction then."""
        then = self.policy.judge(error, self.asked.attempt)
        if then is Next.AGAIN:
            return Outcome("again", (before.uuid,), before.status), before
        if then is Next.FORGET:
            return Outcome("passed", (before.uuid,), before.status, to=self._unchanged(before)), before
        return self.left(self.placed(before), entity.short, halts=then is Next.HALT)

    def left(self, before: Transaction, reason: str, *, halts: bool) -> tuple[Outcome, Transaction]:
        """That it fails and leaves the line, and the Transaction then."""
        after = failed(self.services.app.statuses, before)
        takes: Literal["none", "siblings", "all"] = "all" if halts else _TAKES[self.policy.siblings]
        return Outcome("left", (before.uuid,), after.status, held=False, reason=reason, takes=takes), after

    def failure(
        self, step: TaskStep, begun: Begun, error: BaseException, entity: ErrorEntity
    ) -> tuple[Outcome, TaskEnd]:
        """How the step ends by a failure."""
        assert begun.transaction is not None
        outcome, after = self.verdict(begun.transaction, error, entity)
        end = TaskEnd(
            step=step,
            attempt=begun.attempt or 0,
            before=begun.transaction,
            after=after,
            by="error",
            at=entity.failed,
            state="FAILED",
            result=kept(outcome),
            error=entity.short,
            failure=entity,
        )
        return outcome, end

    def _unchanged(self, transaction: Transaction) -> str:
        """Where it goes after a failure that is forgotten: by the Rules, if they can tell."""
        try:
            return self.onward(transaction)
        except (ExpressionError, ProcessDeclarationError):
            return ""

    def met(self, item: Item, begun: Begun) -> Outcome | None:
        """What the ledger or the Transaction says instead of the work; None where it is to be done."""
        if begun.met == "begun":
            return None
        if begun.met in ("done", "failed"):
            return told(item.uuid, begun.result)
        return unfit(item.uuid, begun.transaction, self.asked.claim_id)


async def at_once(work: Callable[[Item], Awaitable[None]], items: Sequence[Item]) -> None:
    """Some at once, in their order. What fails as a whole lets those that are under way come to their end."""
    waiting, faults = deque(items), list[Exception]()

    async def some() -> None:
        while waiting and not faults:
            item = waiting.popleft()
            try:
                await work(item)
            except Exception as fault:  # noqa: BLE001  # raised below, when nothing is under way any more
                faults.append(fault)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(items))):
            group.create_task(some())
    if faults:
        raise faults[0]


def unfit(uuid: UUID, now: Transaction | None, claim: UUID) -> Outcome:
    """What is said of a Transaction that is not any more what its tray took it for; no field of it is touched."""
    if now is None:
        return Outcome("left", (uuid,), "", held=False, reason="it is not there any more")
    reason = CHANGED if now.end_time is None else f"it is {now.status}, and nothing of it can be changed"
    return Outcome("left", (uuid,), now.status, held=now.claim_id == claim and now.end_time is None, reason=reason)


def kept(outcome: Outcome) -> Plain:
    """An outcome as the ledger keeps it."""
    return {
        "kind": outcome.kind,
        "status": outcome.status,
        "held": outcome.held,
        "to": outcome.to,
        "children": [str(child) for child in outcome.children],
        "reason": outcome.reason,
        "takes": outcome.takes,
    }


def told(uuid: UUID, result: Any) -> Outcome:
    """An outcome out of the ledger."""
    return Outcome(**{**result, "transactions": (uuid,), "children": tuple(map(UUID, result["children"]))})


def leaves(error: BaseException) -> bool:
    """Whether an error is no matter of the Task's: it ends what surrounds the work."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, (GeneratorExit, KeyboardInterrupt))
