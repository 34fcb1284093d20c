"""The shapes of answers about business processes: their Monitors, schedules and Transactions.

Durations are ISO 8601, as in PT1M30S. Times are ISO-8601 instants in UTC.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from casework.api.shapes import Number, Shape


class ProcessTask(Shape):
    """A task of a process, in its order; `max_per_second`: its limit over all workers, null where it has none."""

    name: str
    kind: str
    version: str
    max_per_second: float | None


class StatusCount(Shape):
    """How many Transactions are in a status, at this process; `claimed` are in trays, `oldest` began first."""

    status: str
    transactions: int
    claimed: int
    oldest: str


class MonitorValue(Shape):
    """A value in force, and where it comes from. No value is no limit."""

    value: str | int | None
    source: Literal["row", "json", "default", "floor"]


class MonitorConfiguration(Shape):
    """What is in force at its next wake. `ignored` says what of the configuration is not used, and why."""

    polling_interval: MonitorValue
    sleep_time: MonitorValue
    max_loops: MonitorValue
    max_running_time: MonitorValue
    ignored: list[str]


class MonitorClass(Shape):
    """A Monitor class as it is configured; it holds for each of its Monitors from the next wake on."""

    monitor_class: str
    configuration: MonitorConfiguration


class Monitor(Shape):
    """The Monitor of a process.

    `state`: never_started; running; ended (`how`: COMPLETED after its limits or a stop, else as the engine ended it);
    unknown, where the engine cannot be reached. Loops and last poll are those of its newest life.
    """

    process: str
    monitor_class: str
    state: Literal["never_started", "running", "ended", "unknown"]
    how: str | None
    stopped: bool = Field(description="Somebody has stopped it: it does not go on until it is started by hand.")
    since: str | None
    ended_at: str | None
    completed_loops: int
    last_polling_time: str | None
    next_wake: str | None = Field(description="As far as a worker can say.")
    rounds: int | None = Field(description="Wakes of this life, as far as a worker can say.")
    claimed: int | None = Field(description="Transactions that it let on in this life, as far as a worker can say.")
    configuration: MonitorConfiguration


class MonitorList(Shape):
    """The Monitors of all processes, in the order of the application."""

    items: list[Monitor]


class MonitorRound(Shape):
    """A round that polled, or the last one of a life; `stopped` says why that ended."""

    life: UUID
    round: int
    at: str
    polled: bool
    claimed: int
    trays: int
    taken_in: int
    repeated: int
    bad: int
    failure: str | None
    loop_record: bool
    stopped: str | None


class RefusedEntity(Shape):
    """An entity that could not be taken in, or (without a natural key) a poll that failed; `times` counts repeats."""

    natural_key: str | None
    type: str
    code: str
    severity: str
    short: str
    full: str
    times: int
    first_at: str
    last_at: str


class MonitorDetail(Monitor):
    """A Monitor with its newest rounds, and what it refused last; at most 100 of each."""

    newest_rounds: list[MonitorRound]
    newest_refused: list[RefusedEntity]


class Finalizer(Shape):
    """What ends the line: a Transaction in status `expects` is set to `sets`."""

    expects: str
    sets: str


class DeclaredSchedule(Shape):
    """The schedule that the application declares: an interval, or cron in a zone."""

    cron: list[str]
    zone: str | None
    every: str | None
    offset: str
    jitter: str
    overlap: str
    catch_up: str


class Process(Shape):
    """A process: its line, how many Transactions are at it (open, or ended within a day), and its Monitor."""

    name: str
    tasks: list[ProcessTask]
    finalizer: Finalizer | None
    tray_size: int
    max_trays: int
    handles_errors: bool
    counts: list[StatusCount]
    monitor: Monitor
    declared_schedule: DeclaredSchedule | None


class ProcessList(Shape):
    """All processes of the application, in its order; `elsewhere` counts Transactions that are at none of them."""

    items: list[Process]
    elsewhere: list[StatusCount]


class ProcessSchedule(Shape):
    """The schedule that the engine keeps, and its next starts.

    `source`: declared, as the application declares it now; outdated, as it did before; by_hand: an operator has set it.
    """

    source: Literal["declared", "outdated", "by_hand"]
    paused: bool
    note: str | None
    next_starts: list[str]


class ProcessWaits(Shape):
    """How many Transactions wait at joins for children in other trays, and since when the first does."""

    transactions: int
    since: str | None


class ProcessDetail(Process):
    """A process with its schedule; null where there is none, or the engine cannot be reached."""

    waits: ProcessWaits
    schedule: ProcessSchedule | None


class ProcessReceipt(Shape):
    """What became of a message to a process.

    started; running: it was started before; stopping: it ends at once, or behind the poll that it is in; polling: it
    polls now; scheduled; unscheduled; unchanged: there was no schedule.
    """

    process: str
    state: Literal["started", "running", "stopping", "polling", "scheduled", "unscheduled", "unchanged"]


class Transaction(Shape):
    """A Transaction's own row."""

    uuid: UUID
    parent_uuid: UUID | None
    root_uuid: UUID
    cloned_from: UUID | None = Field(description="The failed Transaction whose place it takes.")
    status: str
    status_before_error: str | None
    claim_id: UUID | None
    process: str | None
    task: str | None
    natural_key: str | None
    business_key: str | None
    priority: int
    due_time: str | None
    start_time: str
    end_time: str | None
    data: dict[str, Any]
    skip_until: str | None
    straight_through: bool
    by_hand: bool
    updated_at: str


class TransactionPage(Shape):
    """Transactions, newest first; `next_cursor` leads to the page after, and is null on the last."""

    items: list[Transaction]
    next_cursor: str | None


class Stage(Shape):
    """A status that it took: `by` is a Monitor's class, a task, `finalizer`, `error`, or who answered directly."""

    before: str | None
    after: str
    process: str
    by: str
    claim_id: UUID | None
    at: str


class TaskStep(Shape):
    """A row of the ledger of tasks; `attempt` counts its begins."""

    step_id: UUID
    claim_id: UUID
    process: str
    task: str
    path: str
    kind: str
    task_version: str
    state: Literal["STARTED", "COMPLETED", "FAILED"]
    attempt: int
    result: Any
    error: str | None
    started_at: str
    ended_at: str | None


class TransactionError(Shape):
    """An error that was recorded: one for each attempt that failed."""

    uuid: UUID
    type: Literal["BUSINESS", "APPLICATION"]
    code: str
    severity: Literal["WARNING", "ERROR", "CRITICAL"]
    short: str
    full: str
    process: str
    task: str
    attempt: int
    started: str
    failed: str


class LinkedRun(Shape):
    """A run that an agent or manual task started; `status` is null where the run was deleted."""

    run_id: UUID
    task: str
    status: str | None
    at: str


class Analytics(Shape):
    """Figures of a Transaction that was COMPLETED: seconds in all and by status, errors, cost of its runs."""

    seconds: Number
    stage_times: dict[str, Number]
    straight_through: bool
    by_hand: bool
    errors: int
    cost: Number


class JoinWait(Shape):
    """A parent waits at a join for children in other trays: `missing` are those that have not come."""

    process: str
    task: str
    since: str
    missing: list[UUID]


class TransactionDetail(Transaction):
    """A Transaction with all that belongs to it; of children and clones the newest 200."""

    stages: list[Stage]
    steps: list[TaskStep]
    errors: list[TransactionError]
    runs: list[LinkedRun]
    children: list[Transaction]
    clones: list[Transaction]
    waits: JoinWait | None = Field(description="Where it waits for its children now.")
    analytics: Analytics | None
    answers: list[str] = Field(description="What can be done about it: none unless it has an error.")


class Answered(Shape):
    """A failed Transaction as it is now, and its clone where there is one."""

    transaction: Transaction
    clone: Transaction | None


class InboxReceipt(Shape):
    """`accepted`: it is kept, and waits. `known`: it was sent before, and nothing is done."""

    inbox: str
    key: str
    state: Literal["accepted", "known"]
