"""What crosses the durable boundary for a tray; the same rules hold as in `contracts`.

Transactions with the same answer stand together in it, so that a tray of a hundred that does well is a short text.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal
from uuid import UUID

from casework.process.lines import Shape
from casework.process.walk import Entry, TrayState

TRAY_WORKFLOW = "casework.tray"
WORK_TRAY = "casework.work_tray"
GIVE_UP = "casework.give_up"
TELL_SKIPPED = "casework.tell_skipped"
RELEASE_TRAY = "casework.release_tray"
AT_ONCE = 8
"""How many Transactions of a tray are worked on at one time."""


def station_queue(task_queue: str) -> str:
    """The task queue of the work at stations, beside the one of all else.

    A worker takes from it no more than it has room for, so that what waits does so at the engine, where it costs
    nothing: in a worker it would send heartbeats, of which a thousand open trays are more than an engine can take. And
    what trays have to do does not stand in the way of models, tools and Monitors.
    """
    return f"{task_queue}/stations"


@dataclass(frozen=True)
class Standing:
    """Transactions of a tray that have the same status, in the order of the tray."""

    status: str
    transactions: tuple[UUID, ...]


def limited_queue(task_queue: str, task: str) -> str:
    """The task queue of a task that has a limit, in whatever processes it stands: the engine limits queues."""
    return f"{task_queue}/limited/{task}"


def apart_ms(max_per_second: float) -> int:
    """A limit as it crosses the boundary: how long Transactions lie apart under it, in milliseconds."""
    return math.ceil(1000 / max_per_second)


def standing(statuses: Iterable[tuple[UUID, str]]) -> tuple[Standing, ...]:
    """Transactions with their statuses, those that follow each other with the same one together."""
    runs = groupby(statuses, key=lambda each: each[1])
    return tuple(Standing(status, tuple(uuid for uuid, _ in group)) for status, group in runs)


@dataclass(frozen=True)
class TrayCarried:
    """What a part of a tray takes over from the one before: `held` are those that bear its claim still, `given_up` how
    often it has given up some.
    """

    part: int
    state: TrayState
    standing: tuple[Standing, ...]
    held: tuple[UUID, ...]
    counters: Mapping[str, Mapping[str, int]]
    given_up: int = 0


@dataclass(frozen=True)
class TrayStart:
    """Input of a tray: the Transactions that a claim has stamped, on the line as it was then.

    `deadlines_ms` are those of one Transaction in each task, in milliseconds; a station without one has the longest.
    `apart_ms` is for each task with a limit how long its Transactions lie apart. A hint: the worker that takes a task
    knows better.
    """

    tenant: str
    process: str
    claim_id: UUID
    shape: Shape
    entries: tuple[Entry, ...]
    standing: tuple[Standing, ...]
    deadlines_ms: Mapping[str, int]
    roll_over_events: int = 4_000
    roll_over_bytes: int = 4_000_000
    carried: TrayCarried | None = None
    ahead: tuple[str, ...] = ()
    """Stations whose work may be done with that of the one before, in one activity."""
    apart_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrayEnd:
    """Result of a tray: how many Transactions were in it, and how many left the line before its end."""

    transactions: int
    left: int


@dataclass(frozen=True)
class Visit:
    """A visit of a station, from 1."""

    station: str
    visit: int

    @property
    def path(self) -> str:
        """As `TrayWork.path`."""
        return f"{self.station}.{self.visit}"


@dataclass(frozen=True)
class TrayWork:
    """A station's work on some Transactions of a tray, or a part of it.

    `attempt` is that of the error policy, from 1. `ahead` are the visits that follow, as long as all Transactions pass
    to each of them: what is done of these is told too. `unlimited`: it was sent as the work of a task without a limit;
    a worker that knows of one does nothing, and says so (`apart_ms` in its answer). `others`: more Transactions are on
    this visit, in other activities; a failure of one of those may concern these.
    """

    tenant: str
    process: str
    claim_id: UUID
    station: str
    visit: int
    attempt: int
    standing: tuple[Standing, ...]
    ahead: tuple[Visit, ...] = ()
    unlimited: bool = False
    others: bool = False

    @property
    def path(self) -> str:
        """The path of the visit below the tray: with the tray's id the identity of what is done in it."""
        return f"{self.station}.{self.visit}"


@dataclass(frozen=True)
class Outcome:
    """What came of the work on each of `transactions`, and the status that each has now.

    `held`: it bears the claim still. The rest says what `casework.process.walk` is told: `to` of those that passed or
    were parted, "" where no Rule holds and the next station follows; `children` of the one that was parted; `reason`
    and `takes` of those that leave.
    """

    kind: Literal["passed", "parted", "again", "waits", "left"]
    transactions: tuple[UUID, ...]
    status: str
    held: bool = True
    to: str = ""
    children: tuple[UUID, ...] = ()
    reason: str = ""
    takes: Literal["none", "siblings", "all"] = "none"


@dataclass(frozen=True)
class TrayReply:
    """The outcomes of a TrayWork or a GiveUpTray: each of its Transactions stands in one.

    `ahead` are those of the first visits of `TrayWork.ahead`, as far as they came. `apart_ms` instead of any: the task
    has a limit, and is to be done in its own queue.
    """

    outcomes: tuple[Outcome, ...]
    ahead: tuple[tuple[Outcome, ...], ...] = ()
    apart_ms: int | None = None


@dataclass(frozen=True)
class GiveUpTray:
    """These Transactions fail by no fault of their own: `reasons` says why, `standing` as what they are expected.

    `number` counts from 1 what the tray has given up. `path` and `attempt` are those of the work that nobody could tell
    the outcome of; "" where no work was due.
    """

    tenant: str
    process: str
    claim_id: UUID
    number: int
    standing: tuple[Standing, ...]
    reasons: Mapping[UUID, str]
    path: str = ""
    attempt: int = 0


@dataclass(frozen=True)
class SkippedTasks:
    """Transactions that go on at a later task, by that task; the tasks before it are told."""

    tenant: str
    process: str
    claim_id: UUID
    goes_on_at: Mapping[UUID, str]


@dataclass(frozen=True)
class ReleaseTray:
    """Let go of whatever bears the claim still."""

    tenant: str
    process: str
    claim_id: UUID
