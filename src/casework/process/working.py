"""What a Task does to one Transaction, as values: the runner's work without its rows.

The kinds that are done in one call are done here (`worked`). Agent and manual tasks are two calls with a wait between
them, which is the runner's; what their second call gives is put on by `applied`, as every Change is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from casework.errors import BusinessError, ProcessDeclarationError
from casework.process.declaring import spec_of
from casework.process.failures import ErrorEntity
from casework.process.statuses import StatusSet
from casework.process.tasks import (
    Change,
    ErrorTask,
    InputEntityTask,
    JoinTask,
    PlainTask,
    Remedy,
    SplitTask,
    Task,
    TaskContext,
    TransactionalTask,
)
from casework.process.transactions import Transaction, changed, child, moved
from casework.values import instant

MOST_PRIORITY = 2**31 - 1
"""Highest priority, and below 0 the lowest: what the database holds."""
MOST_CHILDREN = 1_000
"""Most children of one split: they travel in one tray, as many as the largest holds."""


@dataclass(frozen=True, slots=True)
class Family:
    """What a join knows of a Transaction that has come to it: how many children it has, and those that have arrived."""

    children: int
    arrived: tuple[Transaction, ...] = ()
    away: tuple[Transaction, ...] = ()
    """Those that have not arrived, as far as they are known."""

    @property
    def missing(self) -> int:
        """How many have not arrived."""
        return self.children - len(self.arrived)


@dataclass(frozen=True, slots=True)
class Reads:
    """What the kinds read besides the Transaction itself: a join its family, an error task the errors."""

    family: Callable[[Transaction], Awaitable[Family]]
    errors: Callable[[Transaction], Awaitable[Sequence[ErrorEntity]]]


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of it: the Transaction as it is now, its children where it was split, a remedy for it."""

    transaction: Transaction
    children: tuple[Transaction, ...] = ()
    remedy: Remedy | None = None


def applied(statuses: StatusSet, transaction: Transaction, change: Change | None, at: datetime) -> Transaction:
    """The Transaction with what a Task asked for.

    Raises:
        TransitionError: it may not go to that status.
        UnserialisableError: the data, or the due time, cannot be kept.
        ProcessDeclarationError: the Task gave something that is no Change, or a part of it has another type.
    """
    if change is None:
        return transaction
    if not isinstance(change, Change):
        raise ProcessDeclarationError(f"A Task gave {change!r:.100}. Return a Change, or None.", field="task")
    made = changed(transaction, **change.data) if change.data else transaction
    if change.priority is not None or change.due_time is not None:
        _check_turn(change)
        priority = made.priority if change.priority is None else change.priority
        made = replace(made, priority=priority, due_time=change.due_time or made.due_time)
    return made if change.status is None else moved(statuses, made, change.status, at)


def _check_turn(change: Change) -> None:
    """That what tells whose turn it is can be written.

    Raises:
        UnserialisableError, ProcessDeclarationError: as `applied`.
    """
    priority: Any = change.priority
    due_time: Any = change.due_time
    if priority is not None and not (type(priority) is int and abs(priority) <= MOST_PRIORITY):
        told = (
            f"A Task gave priority {priority!r:.100}. Give a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}; "
            "higher ones are claimed first."
        )
        raise ProcessDeclarationError(told, field="priority")
    if due_time is None:
        return
    if not isinstance(due_time, datetime):
        told = f"A Task gave due_time {due_time!r:.100}. Give an aware datetime."
        raise ProcessDeclarationError(told, field="due_time")
    instant(due_time, "due_time")


async def worked(task: Task, transaction: Transaction, ctx: TaskContext, statuses: StatusSet, reads: Reads) -> Worked:
    """Let a Task of a kind that is done in one call do its work; its errors are the caller's.

    Raises:
        ProcessDeclarationError: the kind takes more than one call, or the Task gave what it cannot give.
    """

    def put(change: Any) -> Worked:
        return Worked(applied(statuses, transaction, change, ctx.now))

    match task:
        case PlainTask():
            return put(await task.run(transaction, ctx))
        case TransactionalTask():
            return Worked(await _transactional(task, transaction, ctx, statuses))
        case InputEntityTask():
            for entity in await task.find(transaction, ctx):
                await task.save(await task.process(entity, transaction, ctx), transaction, ctx)
            return Worked(transaction)
        case SplitTask():
            parts = _bounded(task, await task.split(transaction, ctx))
            made = (child(transaction, ctx.path, number, data, ctx.now) for number, data in enumerate(parts, start=1))
            return Worked(transaction, tuple(made))
        case JoinTask():
            return put(await _joined(task, transaction, ctx, await reads.family(transaction)))
        case ErrorTask():
            found = await task.handle(transaction, await reads.errors(transaction), ctx)
            return Worked(transaction, remedy=found) if isinstance(found, Remedy) else put(found)
    raise ProcessDeclarationError(f"A {task.kind} Task is not done in one call.", field="task")


def _bounded(task: SplitTask, parts: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """No more children than a tray can carry.

    Raises:
        ProcessDeclarationError: there are more; names the task and how many.
    """
    taken = tuple(islice(parts, MOST_CHILDREN + 1))
    if len(taken) > MOST_CHILDREN:
        count = f"{len(parts):,}" if isinstance(parts, Sized) else f"more than {MOST_CHILDREN:,}"
        raise ProcessDeclarationError(
            f"Task {spec_of(type(task)).name!r} gave {count} children; one Transaction is split into {MOST_CHILDREN:,} "
            "at most. Split it into groups, and each of these by a further split task.",
            field="task",
        )
    return taken


async def _transactional(
    task: TransactionalTask, transaction: Transaction, ctx: TaskContext, statuses: StatusSet
) -> Transaction:
    if not await task.should_run(transaction, ctx):
        return applied(statuses, transaction, await task.instead(transaction, ctx), ctx.now)
    made = applied(statuses, transaction, await task.run(transaction, ctx), ctx.now)
    return applied(statuses, made, await task.after(made, ctx), ctx.now)


async def _joined(task: JoinTask, transaction: Transaction, ctx: TaskContext, family: Family) -> Change | None:
    """Nothing for a Transaction without children; for a parent the join, if all have come."""
    if not family.children:
        return None
    if family.missing:
        raise BusinessError(
            f"{family.missing} of {family.children} children have not come to the join {ctx.path}. Look at their "
            "errors; clone what failed.",
            code="CHILDREN_MISSING",
        )
    return await task.join(transaction, family.arrived, ctx)
