"""A tray's walk in memory: the driver of `casework.process.walk`, one Transaction after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from casework.errors import ExpressionError, FatalError, ProcessDeclarationError
from casework.process.declaring import TaskSpec
from casework.process.failures import Spot, error_entity
from casework.process.identities import step_key
from casework.process.injection import Injector
from casework.process.lines import FINALIZER, MONITOR, Line, record_of
from casework.process.local.calling import Agent, Reviewer, called
from casework.process.local.store import LocalStore, TraceRecord
from casework.process.policies import ErrorPolicy, Next, nearest
from casework.process.remedies import remedied
from casework.process.tasks import (
    JoinTask,
    Kind,
    Task,
    TaskContext,
    TransactionalTask,
)
from casework.process.transactions import Transaction, failed, moved
from casework.process.walk import (
    Again,
    Due,
    Entry,
    GiveUp,
    Left,
    Parted,
    Passed,
    Result,
    TrayState,
    Waits,
    Work,
    advance,
    due,
    enter,
)
from casework.process.working import Family, Reads, Worked


@dataclass(frozen=True)
class Hands:
    """What the work of a tray needs beside the line."""

    store: LocalStore
    injector: Injector
    lines: Mapping[str, Line]
    policy: ErrorPolicy | None
    agent: Agent
    reviewer: Reviewer
    instant: Callable[[], datetime]
    """The present instant, of the invented clock."""
    environment: Mapping[str, str] = field(default_factory=dict)


class LocalTray:
    """One tray on its line. `claimed` are its Transactions as the claim left them."""

    def __init__(self, hands: Hands, line: Line, claim_id: UUID, claimed: list[Transaction]) -> None:
        self._hands = hands
        self._line = line
        self._claim = claim_id
        self._held = {each.uuid: each for each in claimed}
        self._state: TrayState | None = None

    async def walk(self) -> bool:
        """Walk until nothing is due, and let go of what is left; or until what is due waits for other trays: False.

        Called again it looks for those first, and goes on.
        """
        shape = self._line.shape
        if self._state is None:
            self._state = enter(shape, await self._entries())
        looked = False
        while (pending := due(shape, self._state)) is not None:
            waits = isinstance(pending, Work) and pending.waited
            if waits and looked:
                return False
            looked = waits
            self._state = advance(shape, self._state, await self._results(pending))
        self._let_go()
        return True

    async def _entries(self) -> list[Entry]:
        entries = []
        for each in self._held.values():
            entries.append(self._entry(each))
            await self._skipped(each)
        return entries

    def _entry(self, transaction: Transaction) -> Entry:
        """A Rule that cannot be evaluated over it refuses it the line, and it alone."""
        try:
            to, refused = self._onward(MONITOR, transaction), None
        except (ExpressionError, ProcessDeclarationError) as error:
            to, refused = self._line.stations[1], str(error)
        return Entry(transaction.uuid, to, transaction.parent_uuid, transaction.skip_until, refused)

    async def _skipped(self, transaction: Transaction) -> None:
        """Tell the tasks that it passes over, where it goes on at a later one."""
        if transaction.skip_until not in self._line.specs:
            return
        for spec in self._line.specs.values():
            if spec.name == transaction.skip_until:
                return
            async with self._hands.injector.made(spec.cls) as task:
                if isinstance(task, TransactionalTask):
                    await task.on_skipped(transaction, f"it goes on at task {transaction.skip_until!r}")

    async def _results(self, pending: Due) -> dict[UUID, Result]:
        if isinstance(pending, GiveUp):
            given_up = pending.reasons.items()
            return {uuid: self._given_up(uuid, reason) for uuid, reason in given_up}
        return {uuid: await self._result(pending, uuid) for uuid in pending.transactions}

    async def _result(self, work: Work, uuid: UUID) -> Result:
        """Do the work on one Transaction, unless it is not any more what the tray took it for."""
        transaction = self._hands.store.expected(self._held[uuid])
        if transaction is None:
            return Left("its status or claim was changed from outside the tray")
        if transaction.status in self._line.statuses.terminal:
            return Left(f"it is {transaction.status}, and nothing of it can be changed")
        if self._waits(work, transaction):
            return Waits()
        started = self._hands.instant()
        try:
            if work.station == FINALIZER:
                return self._finalized(transaction)
            transaction = replace(transaction, process=self._line.process.name, task=work.station)
            return await self._worked(work, self._line.specs[work.station], transaction)
        except Exception as error:  # noqa: BLE001  # whatever a task raises is its Transaction's failure
            return self._failed(work, transaction, error, started)

    def _waits(self, work: Work, transaction: Transaction) -> bool:
        """Whether it stands at a join, and a child of it can still come in another tray."""
        if self._line.shape.kinds.get(work.station) is not Kind.JOIN:
            return False
        away = self._hands.store.family(transaction).away
        if not any(self._line.may_bring(child, self._claim) for child in away):
            return False
        now, limit = self._hands.instant(), getattr(self._line.specs[work.station].cls, "longest_wait", None)
        since = self._hands.store.waits.setdefault((transaction.uuid, self._claim), now)
        return limit is None or now - since < limit

    async def _worked(self, work: Work, spec: TaskSpec, transaction: Transaction) -> Result:
        if transaction.skip_until == spec.name:
            transaction = replace(transaction, skip_until=None)
        key = str(step_key(self._claim, work.path, transaction.uuid))
        ctx = TaskContext(self._line.process.name, work.path, key, work.attempt, self._hands.instant())
        async with self._hands.injector.made(spec.cls) as task:
            made = await self._call(task, transaction, ctx)
        if made.remedy is not None:
            return self._remedied(spec, made)
        to = self._onward(work.station, made.transaction)
        if isinstance(task, JoinTask):
            self._hands.store.arrive(made.transaction)
        for each in (made.transaction, *made.children):
            self._put(each, spec.name)
        children = tuple(each.uuid for each in made.children)
        return Parted(to, children) if children else Passed(to)

    async def _call(self, task: Task, transaction: Transaction, ctx: TaskContext) -> Worked:
        reads = Reads(self._family, self._errors)
        return await called(task, transaction, ctx, self._line.statuses, reads, self._hands.agent, self._hands.reviewer)

    async def _family(self, transaction: Transaction) -> Family:
        return self._hands.store.family(transaction)

    async def _errors(self, transaction: Transaction) -> Any:
        return self._hands.store.errors_of(transaction)

    def _remedied(self, spec: TaskSpec, made: Worked) -> Result:
        assert made.remedy is not None
        hands = self._hands
        ended = remedied(
            made.transaction,
            made.remedy,
            statuses=self._line.statuses,
            policy=self._policy(spec),
            lines=hands.lines.values(),
            at=hands.instant(),
        )
        self._put(ended.transaction, spec.name)
        if ended.clone is not None:
            self._put(ended.clone, spec.name)
            hands.store.cloned(ended.transaction.uuid, ended.clone.uuid)
        if ended.by_hand:
            hands.store.by_hand.add(ended.transaction.uuid)
        return Left(f"it was ended by {made.remedy.answer}")

    def _finalized(self, transaction: Transaction) -> Result:
        finalizer = self._line.process.finalizer
        assert finalizer is not None  # the line has the station
        if transaction.status == finalizer.expects:
            transaction = moved(self._line.statuses, transaction, finalizer.sets, self._hands.instant())
            self._put(replace(transaction, claim_id=None, task=None), FINALIZER)
        return Passed(self._line.behind(FINALIZER))

    def _failed(self, work: Work, transaction: Transaction, error: Exception, started: datetime) -> Result:
        spec = self._line.specs.get(work.station)
        entity = self._record(work.station, work.path, transaction, error, work.attempt, started)
        policy = self._policy(spec)
        then = policy.judge(error, work.attempt)
        if then is Next.AGAIN:
            return Again()
        if then is Next.FORGET:
            return Passed(self._unchanged(work.station, transaction))
        self._put(failed(self._line.statuses, transaction), "error")
        takes = "all" if then is Next.HALT else "siblings" if policy.siblings else "none"
        return Left(entity.short, takes)  # type: ignore[arg-type]  # one of the three

    def _given_up(self, uuid: UUID, reason: str) -> Result:
        transaction = self._hands.store.expected(self._held[uuid])
        if transaction is not None:
            at = self._hands.instant()
            self._record(transaction.task or MONITOR, "given_up.1", transaction, FatalError(reason), 1, at)
            self._put(failed(self._line.statuses, transaction), "error")
        return Left(reason)

    def _record(
        self, task: str, path: str, transaction: Transaction, error: Exception, attempt: int, started: datetime
    ) -> Any:
        store = self._hands.store
        entity = error_entity(
            error,
            transaction,
            Spot(self._line.process.name, task, step_key(self._claim, path, transaction.uuid)),
            root=store.root(transaction),
            attempt=attempt,
            started=started,
            failed=self._hands.instant(),
            environment=self._hands.environment,
        )
        store.errors.append(entity)
        return entity

    def _policy(self, spec: TaskSpec | None) -> ErrorPolicy:
        return nearest([spec.errors if spec else None, self._line.process.errors, self._hands.policy])

    def _unchanged(self, station: str, transaction: Transaction) -> str:
        """Where it goes after a failure that is forgotten: by the Rules, if they can tell."""
        try:
            return self._onward(station, transaction)
        except (ExpressionError, ProcessDeclarationError):
            return self._line.behind(station)

    def _onward(self, station: str, transaction: Transaction) -> str:
        to = self._line.route(station, record_of(transaction))
        self._seen(station, to, transaction.uuid)
        return to

    def _seen(self, station: str, to: str, uuid: UUID) -> None:
        self._hands.store.trace.append(TraceRecord(self._line.process.name, station, to, uuid))

    def _put(self, transaction: Transaction, by: str) -> None:
        self._held[transaction.uuid] = transaction
        self._hands.store.put(transaction, self._line.process.name, by, self._hands.instant())

    def _let_go(self) -> None:
        """What is at the end of its line, or failed, waits for the next claim."""
        for each in self._held.values():
            now = self._hands.store.transactions[each.uuid]
            if now.claim_id == self._claim:
                self._hands.store.transactions[each.uuid] = replace(now, claim_id=None)
