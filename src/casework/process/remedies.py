"""How a failed Transaction ends: what a person's answer, or an error task's, makes of it.

It never returns to the normal flow by itself. What it stood for may go on in a new Transaction, its clone; only a
project whose policy says so lets it resume, or be completed by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from casework.errors import InputError, StateError
from casework.graph.problems import unknown
from casework.ids import derived_id
from casework.process.lines import Line
from casework.process.monitors import InputMonitorTask, MonitorTask, TransactionMonitorTask
from casework.process.policies import Answer, ErrorPolicy
from casework.process.statuses import ABORTED, COMPLETED, StatusSet
from casework.process.tasks import Remedy
from casework.process.transactions import Transaction, changed, moved


@dataclass(frozen=True, slots=True)
class Remedied:
    """The failed Transaction as it is now, its clone where there is one, and whether it was completed by hand.

    Both Transactions, and the reassignment of what belonged to the first, are one database transaction.
    """

    transaction: Transaction
    clone: Transaction | None = None
    by_hand: bool = False


def remedied(
    transaction: Transaction,
    remedy: Remedy,
    *,
    statuses: StatusSet,
    policy: ErrorPolicy,
    lines: Iterable[Line],
    at: datetime,
) -> Remedied:
    """What the remedy makes of a Transaction that has an error, at the instant `at`.

    Raises:
        StateError: the Transaction has no error, or the policy has not this answer.
        InputError: the task to resume at is none that there is, or from the status to clone into nothing goes on.
    """
    if not transaction.in_error:
        raise StateError(
            f"Transaction {transaction.uuid} is {transaction.status} and has no error. Answer only for one that has.",
            details={"status": transaction.status},
        )
    if remedy.answer not in policy.answers:
        raise StateError(
            f"The answer {remedy.answer} is not on offer; there are {', '.join(policy.answers)}. Choose one of these, "
            "or put it on in the project's ErrorPolicy.",
            details={"answers": list(policy.answers)},
        )
    if remedy.answer is Answer.ABORT:
        return Remedied(_freed(moved(statuses, transaction, ABORTED, at)))
    if remedy.answer is Answer.CLONE:
        return _cloned(transaction, remedy, statuses, lines, at)
    if remedy.answer is Answer.COMPLETE:
        done = changed(replace(transaction, status=COMPLETED, end_time=at, straight_through=False), **remedy.data)
        return Remedied(_freed(done), by_hand=True)
    return _resumed(transaction, remedy, lines)


def resumable(lines: Iterable[Line]) -> dict[str, str]:
    """The tasks at which a Transaction can go on, each with the status from which its process claims."""
    return {
        name: line.process.monitor.status_to_monitor
        for line in lines
        if issubclass(line.process.monitor, TransactionMonitorTask) and not line.handles_errors
        for name in line.specs
    }


def clonable(statuses: StatusSet, lines: Iterable[Line]) -> tuple[str, ...]:
    """The statuses of the normal flow from which a Monitor of these lines takes Transactions, in the order declared.

    A clone in any other would stay where it is for ever. Of a Monitor of a project's own kind that names no
    `status_to_monitor` it is enough that a move leads to its `status_to_set`.
    """
    monitors = [line.process.monitor for line in lines if not line.handles_errors]
    return tuple(status for status in statuses.working if any(_takes(each, status, statuses) for each in monitors))


def _takes(monitor: type[MonitorTask], status: str, statuses: StatusSet) -> bool:
    if issubclass(monitor, InputMonitorTask):
        return False  # it makes its own
    before = getattr(monitor, "status_to_monitor", None)
    return monitor.status_to_set in statuses.moves[status] if before is None else bool(before == status)


def _cloned(
    transaction: Transaction, remedy: Remedy, statuses: StatusSet, lines: Iterable[Line], at: datetime
) -> Remedied:
    into, taken = remedy.into or "", clonable(statuses, lines)
    if into not in statuses.working:
        raise InputError(f"Nothing can be cloned into it: {unknown('status', into, taken)}", field="into")
    if into not in taken:
        raise InputError(
            f"Nothing can be cloned into status {into}: no Monitor of this application takes Transactions from it, so "
            f"the clone would stay there for ever. {_choose(taken)}",
            field="into",
        )
    clone = replace(
        transaction,
        uuid=derived_id(transaction.uuid, into, "clone"),
        status=into,
        status_before_error=None,
        start_time=at,
        natural_key=None,
        process=None,
        task=None,
        skip_until=None,
    )
    return Remedied(_freed(moved(statuses, transaction, ABORTED, at)), _freed(changed(clone, **remedy.data)))


def _resumed(transaction: Transaction, remedy: Remedy, lines: Iterable[Line]) -> Remedied:
    """Back to where the process of the task takes Transactions from; it passes over the tasks before."""
    claims = resumable(lines)
    at = remedy.at or ""
    if at not in claims:
        raise InputError(
            f"It cannot resume there: {unknown('task of a process that claims Transactions', at, claims)}", field="at"
        )
    made = replace(transaction, status=claims[at], status_before_error=None, skip_until=at)
    return Remedied(_freed(changed(made, **remedy.data)))


def _choose(taken: tuple[str, ...]) -> str:
    return f"Choose one of {', '.join(taken)}." if taken else "Add the process that goes on from there."


def _freed(transaction: Transaction) -> Transaction:
    return replace(transaction, claim_id=None)
