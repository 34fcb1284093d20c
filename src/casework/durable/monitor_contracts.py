"""What crosses the durable boundary for a Monitor; the same rules hold as in `contracts`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from casework.process.monitor_clock import MonitorState
from casework.process.monitor_settings import Effective, MonitorConfig

MONITOR_WORKFLOW = "casework.monitor"
PROCESS_WORKFLOW = "casework.process_start"
MONITOR_WAKE = "casework.monitor_wake"
MONITOR_POLL = "casework.monitor_poll"
MONITOR_TELL = "casework.monitor_tell"
STOP_SIGNAL = "stop"
POLL_SIGNAL = "poll_now"
MONITOR_QUERY = "monitor"
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class InForce:
    """The configuration in force, in milliseconds; the source of each value, and what was ignored on the way."""

    polling_ms: int
    sleep_ms: int
    max_loops: int | None = None
    max_running_ms: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Effective) -> "InForce":
        """The same as it crosses the boundary."""
        config, longest = found.config, found.config.max_running_time
        return cls(
            polling_ms=config.polling_interval // _MS,
            sleep_ms=config.sleep_time // _MS,
            max_loops=config.max_loops,
            max_running_ms=None if longest is None else longest // _MS,
            sources={name: source.value for name, source in found.sources.items()},
            ignored=tuple(map(str, found.ignored)),
        )

    def config(self) -> MonitorConfig:
        """For the clock."""
        longest = None if self.max_running_ms is None else self.max_running_ms * _MS
        return MonitorConfig(self.polling_ms * _MS, self.sleep_ms * _MS, self.max_loops, longest)


@dataclass(frozen=True)
class Asked:
    """A person asks a Monitor to stop, or to poll now."""

    by: str


@dataclass(frozen=True)
class MonitorCarried:
    """What a part of a Monitor's life takes over from the one before. `claimed` counts Transactions."""

    state: MonitorState
    rounds: int
    claimed: int
    counters: Mapping[str, Mapping[str, int]]
    stop: Asked | None = None
    poll: Asked | None = None


@dataclass(frozen=True)
class MonitorStart:
    """Input of a Monitor. `by` is the person who starts it, so that a stop by hand is over; "": a schedule does."""

    tenant: str
    process: str
    by: str = ""
    roll_over_events: int = 4_000
    carried: MonitorCarried | None = None


@dataclass(frozen=True)
class MonitorEnd:
    """Result of a Monitor. `stopped` is by_row, by_time, by_loops, or by_rule where its loop record led elsewhere."""

    stopped: str
    loops: int
    rounds: int
    claimed: int


@dataclass(frozen=True)
class MonitorLook:
    """Read flag and configuration of a Monitor. `starts`: it is its first wake, and `by` has started it."""

    tenant: str
    process: str
    starts: bool = False
    by: str = ""


@dataclass(frozen=True)
class MonitorSeen:
    """`stopped`: somebody has set the flag in its row."""

    stopped: bool
    in_force: InForce


@dataclass(frozen=True)
class MonitorPoll:
    """Emit what is there now. `life` is the id of this life of the Monitor, `poll` counts its polls from 1."""

    tenant: str
    process: str
    life: str
    poll: int


@dataclass(frozen=True)
class PollReport:
    """What a poll has emitted: Transactions and their trays; of entities from outside those taken in, those that had
    come before and those refused. `failure`: why it ended early."""

    claimed: int = 0
    trays: int = 0
    taken_in: int = 0
    repeated: int = 0
    bad: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class MonitorTell:
    """Write what a round came to: one that polled (`report`), or the last one (`stopped`), or both.

    `stop`: the person who asked for the stop, which is kept in the row.
    """

    tenant: str
    process: str
    life: str
    round: int
    loops: int
    at: datetime
    last_poll: datetime | None = None
    report: PollReport | None = None
    stopped: str | None = None
    stop: Asked | None = None


@dataclass(frozen=True)
class MonitorTold:
    """Where the loop record of the round has gone; None where there is none, since the Monitor stops."""

    to: str | None = None


@dataclass(frozen=True)
class MonitorStanding:
    """Answer of the query: where a Monitor stands. `next_wake` None: it is awake."""

    state: MonitorState
    rounds: int
    claimed: int
    in_force: InForce | None = None
    next_wake: datetime | None = None


@dataclass(frozen=True)
class ProcessStart:
    """Input of what a schedule starts. `monitor` is the id that the Monitor is to have (`monitor_id`).

    `declared` is the digest of the declaration that the schedule was made of; "": of what an operator said.
    """

    tenant: str
    process: str
    monitor: str
    roll_over_events: int = 4_000
    declared: str = ""


@dataclass(frozen=True)
class ProcessEnd:
    """Its result: `started` False where a Monitor of the process was there already, which goes on by itself."""

    started: bool
    monitor: MonitorEnd | None = None


def monitor_id(task_queue: str, tenant: str, process: str) -> str:
    """The id of the Temporal workflow that is the Monitor of a process: there is one at a time.

    The queue is in it because a namespace may hold several projects, which call their processes as they like.
    """
    return f"monitor/{task_queue}/{tenant}/{process}"


StopReason = Literal["by_row", "by_time", "by_loops", "by_rule", "cancelled", "failed"]
"""What `MonitorTell.stopped` may say."""
