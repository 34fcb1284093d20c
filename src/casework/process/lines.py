"""A process as a line: Monitor, Tasks, Finalizer, and Rules between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from casework.errors import ProcessDeclarationError
from casework.graph import expressions
from casework.process.declaring import TaskSpec, spec_of
from casework.process.monitors import MonitorTask
from casework.process.policies import ErrorPolicy
from casework.process.schedules import Schedule
from casework.process.statuses import DEFAULT_STATUSES, ERROR_IN_PROGRESS, StatusSet
from casework.process.tasks import Kind, Task
from casework.process.transactions import Transaction

MONITOR = "monitor"
FINALIZER = "finalizer"
END = "end"
"""Behind the last station: a Transaction that is there has left the line."""
REPEAT = "_sys_repeat"
"""What marks the loop record of a Monitor's round."""
CARRIED, FEWEST_TRAYS = 1_000, 50
"""How many Transactions the trays of a process carry at one time, and how many trays at least, unless it says so."""
RULE_NAMES = (REPEAT, "transaction", "data")
"""What a Rule sees: whether it is the loop record, the Transaction's fields, and its data."""


@dataclass(frozen=True)
class Rule:
    """After station `after`, a record for which `when` (CEL) holds goes to `to`; the first Rule that holds counts.

    Stations are `monitor`, the tasks by name, `finalizer` and `end`. Where no Rule holds the next station follows.
    """

    after: str
    when: str
    to: str


LOOP_RULE = Rule(MONITOR, REPEAT, MONITOR)
"""Takes the loop record back to the Monitor. Every line needs one like it."""


@dataclass(frozen=True)
class Finalizer:
    """Ends a line: a Transaction in status `expects` is set to `sets` and unclaimed; any other is left as it is."""

    expects: str
    sets: str


@dataclass(frozen=True, kw_only=True)
class BusinessProcess:
    """A process as it is written down. `admit` checks it; `errors` goes before the project's policy."""

    name: str
    monitor: type[MonitorTask]
    tasks: tuple[type[Task], ...] = ()
    finalizer: Finalizer | None = None
    rules: tuple[Rule, ...] = (LOOP_RULE,)
    tray_size: int = 1
    """Most Transactions that travel together."""
    max_trays: int | None = None
    """Most trays under way at one time; its Monitor claims no more than there is room for. None: as many as carry
    1,000 Transactions, but at least 50."""
    max_per_key: int | None = None
    """Most Transactions of one business key that are in its trays at one time; None: as many as there are."""
    errors: ErrorPolicy | None = None
    schedule: Schedule | None = None
    """When it starts, unless an operator says otherwise; None: by hand."""

    @property
    def room(self) -> int:
        """Most trays under way at one time, given or not. What is claimed ahead of its work cannot be put behind what
        comes later and is more urgent, so there is no more of it than keeps some workers busy.
        """
        return max(FEWEST_TRAYS, CARRIED // self.tray_size) if self.max_trays is None else self.max_trays


@dataclass(frozen=True)
class Shape:
    """The form of a line as data: its stations in order, and of what kind each task is. All that the walk needs.

    A tray keeps the shape that its line had when it was claimed, so a line that is changed does not change the way of
    what is on it.
    """

    process: str
    stations: tuple[str, ...]
    kinds: Mapping[str, Kind]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Of each station its place in the order."""
        return {name: place for place, name in enumerate(self.stations)}

    def behind(self, station: str) -> str:
        """The station that follows in order."""
        return self.stations[self.places[station] + 1]

    def join_behind(self, station: str) -> str | None:
        """The next join behind a split; None where the children are joined in another line, or nowhere."""
        later = self.stations[self.places[station] + 1 :]
        return next((name for name in later if self.kinds.get(name) is Kind.JOIN), None)


@dataclass(frozen=True)
class Line:
    """The stations of a process, and what follows each. Nothing is checked here; `admit` does that."""

    process: BusinessProcess
    statuses: StatusSet = field(default=DEFAULT_STATUSES)

    @cached_property
    def specs(self) -> Mapping[str, TaskSpec]:
        """The tasks by name, in their order."""
        return {spec.name: spec for spec in map(spec_of, self.process.tasks)}

    @cached_property
    def limits(self) -> Mapping[str, float]:
        """The tasks that have a limit, each with its `max_per_second`."""
        return {name: rate for name, spec in self.specs.items() if (rate := spec.max_per_second) is not None}

    @cached_property
    def shape(self) -> Shape:
        """Its form as data."""
        finalizer = () if self.process.finalizer is None else (FINALIZER,)
        kinds = {name: spec.kind for name, spec in self.specs.items()}
        return Shape(self.process.name, (MONITOR, *self.specs, *finalizer, END), kinds)

    @property
    def stations(self) -> tuple[str, ...]:
        """All stations in order, from the Monitor to the end."""
        return self.shape.stations

    @property
    def handles_errors(self) -> bool:
        """Whether it is an Error process."""
        return getattr(self.process.monitor, "status_to_set", None) == ERROR_IN_PROGRESS

    def behind(self, station: str) -> str:
        """The station that follows in order."""
        return self.shape.behind(station)

    def may_bring(self, transaction: Transaction, claim: UUID | None) -> bool:
        """Whether a Transaction may still come onto this line, or is on it in a tray other than that of `claim`."""
        claimed, monitor = transaction.claim_id is not None, self.process.monitor
        if transaction.end_time is not None or transaction.in_error or (claimed and transaction.claim_id == claim):
            return False
        if claimed and transaction.status == monitor.status_to_set:
            return True
        before = getattr(monitor, "status_to_monitor", None)
        return before is not None and self.statuses.leads(transaction.status, before)

    def rules_after(self, station: str) -> tuple[Rule, ...]:
        """The Rules that are asked behind a station, in order."""
        return tuple(rule for rule in self.process.rules if rule.after == station)

    def route(self, station: str, record: Mapping[str, Any]) -> str:
        """Where a record (`record_of`, or LOOP_RECORD) goes from a station.

        Raises:
            ExpressionError, ProcessDeclarationError: as `ruled`.
        """
        return self.ruled(station, record) or self.behind(station)

    def ruled(self, station: str, record: Mapping[str, Any]) -> str | None:
        """Where the Rules behind a station send a record; None where no Rule holds, so that the next station follows.

        Raises:
            ExpressionError: a Rule cannot be evaluated over it.
            ProcessDeclarationError: a Rule sends a Transaction to the Monitor.
        """
        for rule in self.rules_after(station):
            if expressions.holds(rule.when, record):
                if rule.to == MONITOR and not record[REPEAT]:
                    raise ProcessDeclarationError(
                        f"Process {self.process.name!r}: the rule after {station!r} when {rule.when!r} sends a "
                        f"Transaction to the Monitor. Add `{REPEAT} &&` to it, or name a task.",
                        field="rules",
                    )
                return rule.to
        return None


LOOP_RECORD: Mapping[str, Any] = {REPEAT: True, "transaction": {}, "data": {}}
"""What each round of a Monitor that goes on emits last."""


def record_of(transaction: Transaction) -> Mapping[str, Any]:
    """What Rules see of a Transaction."""
    return {REPEAT: False, "transaction": transaction.record(), "data": transaction.data}
