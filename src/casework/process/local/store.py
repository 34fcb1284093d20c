"""What a store would hold, in dictionaries: Transactions, errors, arrivals at joins; and a log of what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
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
    clones: dict[UUID, UUID] = field(default_factory=dict)
    """Of each that was cloned the one that took its place."""
    business_keys: dict[UUID, str] = field(default_factory=dict)
    """What limits of concurrency count by."""
    waits: dict[tuple[UUID, UUID | None], datetime] = field(default_factory=dict)
    """Of each that waits at a join, by its claim, since when."""
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

    def claim(
        self, status: str, into: str, claim_id: UUID, most: int, *, process: str, per_key: int | None = None
    ) -> list[Transaction]:
        """Take up to `most` Transactions that wait in `status`: by priority, due time and age.

        No more than `per_key` of one business key are in trays of `process` then.
        """
        waiting = [each for each in self.transactions.values() if each.status == status and each.claim_id is None]
        if status == HAS_ERROR:
            waiting = [each for each in waiting if self._error_claims(each.uuid) < ERROR_CLAIMS]
        waiting.sort(key=lambda each: (-each.priority, each.due_time or _LAST, each.start_time))
        free = waiting if per_key is None else self._within(waiting, process, per_key)
        return [
            replace(each, status=into, claim_id=claim_id, process=process, task=None) for each in islice(free, most)
        ]

    def _within(self, waiting: list[Transaction], process: str, per_key: int) -> Iterator[Transaction]:
        """Those that their business keys have room for."""
        taken = Counter(
            self.business_keys.get(each.uuid)
            for each in self.transactions.values()
            if each.process == process and each.claim_id is not None and each.end_time is None
        )
        for each in waiting:
            key = self.business_keys.get(each.uuid)
            if key is None or taken[key] < per_key:
                taken[key] += 1
                yield each

    def refused(self, told: ErrorEntity) -> None:
        """Keep the error of an entity, in the place of the same one before."""
        self.errors[:] = [each for each in self.errors if each.uuid != told.uuid] + [told]

    def cloned(self, failed: UUID, clone: UUID) -> None:
        """A clone has taken the place of a failed one."""
        self.clones[failed] = clone
        if failed in self.business_keys:
            self.business_keys[clone] = self.business_keys[failed]

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
        """The children of a Transaction, and which of them have come to the join, in the order of their split.

        One that was cloned counts by its clone.
        """
        born = [each for each in self.transactions.values() if each.parent_uuid == transaction.uuid]
        children = [each for each in born if each.uuid not in self.clones]
        come = set(self._arrived.get(transaction.uuid, ()))
        arrived, away = (tuple(each for each in children if (each.uuid in come) is wanted) for wanted in (True, False))
        return Family(len(children), arrived, away)

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
