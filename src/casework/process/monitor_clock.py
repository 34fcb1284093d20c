"""When a Monitor polls, sleeps and stops: `(config, state, now) -> (state, what to do)`, pure.

How it moves: the Monitor wakes (`wake`), and is told whether to poll, or to stop. After a poll it says so (`polled`),
which counts a loop. Between wakes it sleeps until `next_wake`. A wake without a poll is no loop. A Monitor that stops
at its time does so at that very instant, not at the wake after it: its last sleep is shortened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from casework.process.monitor_settings import MonitorConfig


class Stop(StrEnum):
    """Why a Monitor has stopped."""

    BY_ROW = "by_row"
    """A person has set `stopped` in its row, or asked for it."""
    BY_TIME = "by_time"
    """Its running time is over."""
    BY_LOOPS = "by_loops"
    """It has polled as often as it may."""


@dataclass(frozen=True, slots=True)
class MonitorState:
    """Where a Monitor stands. All instants are aware; none before the first wake."""

    first_wake: datetime | None = None
    last_poll: datetime | None = None
    """When its last poll began."""
    completed_loops: int = 0
    stopped: Stop | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """What a wake asks for: to poll or not, and whether the Monitor has stopped."""

    poll: bool
    stopped: Stop | None = None

    @property
    def repeats(self) -> bool:
        """Whether the Monitor goes on, so that its round emits the loop record."""
        return self.stopped is None


def wake(
    config: MonitorConfig, state: MonitorState, now: datetime, *, stop_asked: bool = False, poll_asked: bool = False
) -> tuple[MonitorState, Wake]:
    """The Monitor wakes at `now`. `stop_asked` is its row's flag; `poll_asked` says that a person wants a poll now.

    A poll begins at `now`, and counts once `polled` is told that it is over.
    """
    state = state if state.first_wake else replace(state, first_wake=now)
    stopped = Stop.BY_ROW if stop_asked else state.stopped or _limit(config, state, now)
    if stopped is not None:
        return replace(state, stopped=stopped), Wake(False, stopped)
    due = poll_asked or state.last_poll is None or now - state.last_poll >= config.polling_interval
    return (replace(state, last_poll=now) if due else state), Wake(due)


def polled(config: MonitorConfig, state: MonitorState, now: datetime) -> tuple[MonitorState, Stop | None]:
    """The poll is over at `now`: one more loop, and whether that was the last. A Monitor that stops emits no record."""
    state = replace(state, completed_loops=state.completed_loops + 1)
    stopped = state.stopped or _limit(config, state, now)
    return replace(state, stopped=stopped), stopped


def next_wake(config: MonitorConfig, state: MonitorState, now: datetime) -> datetime:
    """When a Monitor that begins to sleep at `now` wakes: after its sleep, or when its running time is over."""
    after = now + config.sleep_time
    if config.max_running_time is None or state.first_wake is None:
        return after
    return min(after, max(now, state.first_wake + config.max_running_time))


def _limit(config: MonitorConfig, state: MonitorState, now: datetime) -> Stop | None:
    if config.max_loops is not None and state.completed_loops >= config.max_loops:
        return Stop.BY_LOOPS
    running = config.max_running_time
    over = running is not None and state.first_wake is not None and now - state.first_wake >= running
    return Stop.BY_TIME if over else None
