"""The Monitor's clock: when it polls, what counts as a loop, and what stops it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.process.monitor_clock import MonitorState, Stop, next_wake, polled, wake
from casework.process.monitor_settings import MonitorConfig

START = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Life(NamedTuple):
    """What a Monitor did: its wakes and polls as seconds since the first wake, and how it ended."""

    wakes: list[float]
    polls: list[float]
    state: MonitorState
    ended: float
    loop_records: int


def live(config: MonitorConfig, *, poll_takes: timedelta = timedelta(0), stop_at: int | None = None) -> Life:
    """A whole life on an invented clock. `stop_at` is the number of the wake at which the row says stopped."""
    now, state = START, MonitorState()
    wakes: list[float] = []
    polls: list[float] = []
    records = 0
    while state.stopped is None and len(wakes) < 10_000:
        wakes.append((now - START).total_seconds())
        state, due = wake(config, state, now, stop_asked=stop_at is not None and len(wakes) >= stop_at)
        if due.poll:
            polls.append(wakes[-1])
            now += poll_takes
            state, _ = polled(config, state, now)
        records += state.stopped is None
        if state.stopped is None:
            now = next_wake(config, state, now)
    return Life(wakes, polls, state, (now - START).total_seconds(), records)


MINUTE = timedelta(minutes=1)
EXAMPLE = MonitorConfig(3 * MINUTE, MINUTE, max_loops=500, max_running_time=timedelta(hours=8))


def test_the_example_of_the_requirements() -> None:
    """BP-15. Sleep PT1M, poll PT3M, stop after PT8H or 500 polls, whichever is first: 160 polls, then the time."""
    life = live(EXAMPLE)
    assert life.polls == [180.0 * number for number in range(160)]
    assert life.wakes == [60.0 * number for number in range(481)]
    assert (life.state.stopped, life.state.completed_loops, life.ended) == (Stop.BY_TIME, 160, 8 * 3600)


def test_the_loops_stop_it_where_they_come_first() -> None:
    """BP-15. The same with a day of running time: the 500th poll is the last, and the Monitor stops with it."""
    life = live(replace(EXAMPLE, max_running_time=timedelta(days=2)))
    assert (life.state.stopped, len(life.polls), life.ended) == (Stop.BY_LOOPS, 500, 499 * 180)


def test_a_wake_without_a_poll_is_no_loop() -> None:
    """BP-15. Of three wakes one polls, and only that counts."""
    state = MonitorState()
    for number, expected in enumerate([True, False, False, True]):
        now = START + number * MINUTE
        state, due = wake(EXAMPLE, state, now)
        assert due.poll is expected
        if due.poll:
            state, _ = polled(EXAMPLE, state, now)
    assert state.completed_loops == 2


def test_the_row_stops_it_at_the_next_wake() -> None:
    """A Monitor whose row says stopped does not poll at its next wake, though a poll is due."""
    life = live(MonitorConfig(MINUTE, MINUTE), stop_at=4)
    assert (life.state.stopped, life.state.completed_loops, life.polls) == (Stop.BY_ROW, 3, [0.0, 60.0, 120.0])


def test_a_poll_can_be_asked_for() -> None:
    """A poll that a person asks for comes at once, and the interval counts from it."""
    state, _ = wake(EXAMPLE, MonitorState(), START)
    state, due = wake(EXAMPLE, state, START + MINUTE, poll_asked=True)
    assert due.poll
    state, due = wake(EXAMPLE, state, START + 3 * MINUTE)
    assert not due.poll
    assert not wake(EXAMPLE, state, START + 3 * MINUTE, poll_asked=True, stop_asked=True)[1].poll


def test_a_stopped_monitor_stays_stopped_and_emits_no_loop_record() -> None:
    """A Monitor that has stopped does nothing at a further wake, and its last round has no loop record."""
    life = live(replace(EXAMPLE, max_loops=2))
    assert life.loop_records == len(life.wakes) - 1
    state, due = wake(EXAMPLE, life.state, START + timedelta(days=1))
    assert (due.poll, due.repeats, state) == (False, False, life.state)


@pytest.mark.parametrize("sleep", [7 * SECOND, MINUTE, timedelta(minutes=7)])
def test_the_last_sleep_ends_with_the_running_time(sleep: timedelta) -> None:
    """The running time is kept to the second, however long it sleeps: 11 h 59 min leave one minute, never more."""
    life = live(MonitorConfig(timedelta(minutes=5), sleep, None, timedelta(hours=11, minutes=59)))
    assert life.ended == (11 * 60 + 59) * 60


SECONDS = st.integers(1, 400).map(lambda number: number * SECOND)
SETTINGS = st.builds(
    MonitorConfig,
    SECONDS,
    SECONDS,
    st.integers(1, 20),
    st.none() | st.integers(1, 9000).map(lambda number: number * SECOND),
)


@given(SETTINGS, st.integers(0, 900))
def test_every_life_keeps_the_rules(config: MonitorConfig, poll_takes: int) -> None:
    """Over random settings: polls lie the interval apart, loops count polls, the first limit reached stops it."""
    life = live(config, poll_takes=poll_takes * SECOND)
    interval = config.polling_interval.total_seconds()
    assert life.polls[0] == 0
    assert all(later - before >= interval for before, later in pairwise(life.polls))
    assert set(life.polls) <= set(life.wakes)
    assert life.state.completed_loops == len(life.polls) <= (config.max_loops or 0)
    assert life.loop_records == len(life.wakes) - (life.state.stopped is not None)
    running = config.max_running_time.total_seconds() if config.max_running_time else None
    if life.state.stopped is Stop.BY_LOOPS:
        assert len(life.polls) == config.max_loops
    else:
        assert (life.state.stopped, running is not None) == (Stop.BY_TIME, True)
        assert running is not None
        assert running <= life.ended <= running + poll_takes
    unpolled = [at for at in life.wakes if at not in set(life.polls)]
    last = max((at for at in life.polls), default=0.0)
    assert all(at - max(p for p in life.polls if p < at) < interval or at >= last + interval for at in unpolled)
