"""What a store would hold, in dictionaries: Transactions, errors, arrivals at joins; and a log of what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from casework.process.failures import ErrorEntity
from casework.process.policies import ERROR_CLAIMS
from casework.process.statuses import ERROR_IN_PROGRESS, HAS_ERROR, IN_ERROR
from casework.process.transactions import Transaction
from casework.process.working import Family

_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StageStep:
    """A status change, and who made it: a Monitor's class, a task, `finalizer`, or `error`. `at` is an instant."""

    transaction: UUID
    before: str | None
    after: str
    process: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A record on its way: from a station to the next. `transaction` is None for the loop record (`_sys_repeat`)."""

    process: str
    station: str
    to: str
    transaction: UUID | None

    @property
    def sys_repeat(self) -> bool:
        """Whether it is a Monitor's loop record."""
        return self.transaction is None


@dataclass
class LocalStore:
    """All that is known. `keys` are the natural keys that have come in."""

    transactions: dict[UUID, Transaction] = field(default_factory=dict)
    errors: list[ErrorEntity] = field(default_factory=list)
    stages: list[StageStep] = field(default_factory=list)
    trace: list[TraceRecord] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    by_hand: set[UUID] = field(default_factory=set)
    """Those that were completed by hand."""
    _arrived: dict[UUID, list[UUID]] = field(default_factory=dict)

    def put(self, transaction: Transaction, process: str, by: str, at: datetime) -> None:
        """Write a Transaction; a new status goes into the log of stages."""
        before = self.transactions.get(transaction.uuid)
        self.transactions[transaction.uuid] = transaction
        status = None if before is None else before.status
        if status != transaction.status:
            self.stages.append(StageStep(transaction.uuid, status, transaction.status, process, by, at))

    def expected(self, claimed: Transaction) -> Transaction | None:
        """The Transaction as it is now, if its status and claim are those that it is taken for; else None."""
        now = self.transactions[claimed.uuid]
        return now if (now.status, now.claim_id) == (claimed.status, claimed.claim_id) else None

    def claim(self, status: str, into: str, claim_id: UUID, most: int) -> list[Transaction]:
        """Take up to `most` Transactions that wait in `status`: by priority, due time and age."""
        waiting = [each for each in self.transactions.values() if each.status == status and each.claim_id is None]
        if status == HAS_ERROR:
            waiting = [each for each in waiting if self._error_claims(each.uuid) < ERROR_CLAIMS]
        waiting.sort(key=lambda each: (-each.priority, each.due_time or _LAST, each.start_time))
        return [replace(each, status=into, claim_id=claim_id) for each in waiting[:most]]

    def _error_claims(self, uuid: UUID) -> int:
        """How often an Error process has claimed it since it last was in no error."""
        taken = 0
        for stage in self.stages:
            if stage.transaction != uuid:
                continue
            taken = taken + (stage.after == ERROR_IN_PROGRESS) if stage.after in IN_ERROR else 0
        return taken

    def arrive(self, transaction: Transaction) -> None:
        """A child has come to the join."""
        if transaction.parent_uuid is not None:
            come = self._arrived.setdefault(transaction.parent_uuid, [])
            if transaction.uuid not in come:
                come.append(transaction.uuid)

    def family(self, transaction: Transaction) -> Family:
        """The children of a Transaction, and which of them have come to the join, in the order of their split."""
        children = [each for each in self.transactions.values() if each.parent_uuid == transaction.uuid]
        come = set(self._arrived.get(transaction.uuid, ()))
        return Family(len(children), tuple(each for each in children if each.uuid in come))

    def root(self, transaction: Transaction) -> UUID:
        """The Transaction that it was split from in the first place, or itself."""
        while transaction.parent_uuid is not None and transaction.parent_uuid in self.transactions:
            transaction = self.transactions[transaction.parent_uuid]
        return transaction.uuid

    def errors_of(self, transaction: Transaction) -> list[ErrorEntity]:
        """Its errors, in order of time."""
        return [each for each in self.errors if each.transaction == transaction.uuid]

    def statuses(self, uuids: Iterable[UUID]) -> list[str]:
        """The status of each."""
        return [self.transactions[uuid].status for uuid in uuids]
