"""Schedules as data: intervals, stagger, the pattern of half days, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.process.test_monitor_clock import live

from casework.errors import ProcessDeclarationError
from casework.process.monitor_clock import Stop
from casework.process.monitor_settings import MonitorConfig
from casework.process.schedules import HALF_DAY_RUN, Overlap, Schedule, half_days, staggered

MINUTE = timedelta(minutes=1)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


def test_processes_are_staggered() -> None:
    """BP-31. Four processes every 10 minutes start at 0:00, 2:30, 5:00 and 7:30, and again ten minutes later."""
    starts = [each.starts(MIDNIGHT, 2) for each in staggered(4, 10 * MINUTE)]
    assert [[str(at - MIDNIGHT) for at in pair] for pair in starts] == [
        ["0:00:00", "0:10:00"],
        ["0:02:30", "0:12:30"],
        ["0:05:00", "0:15:00"],
        ["0:07:30", "0:17:30"],
    ]


@given(st.integers(1, 50), st.integers(50, 100_000), st.datetimes(timezones=st.just(UTC)))
def test_any_number_is_spread_evenly(count: int, seconds: int, after: datetime) -> None:
    """BP-31. The i-th of n starts i*T/n after the first, to the second, wherever one begins to look."""
    every = timedelta(seconds=seconds)
    schedules = staggered(count, every)
    for number, each in enumerate(schedules):
        assert timedelta(0) <= number * every / count - each.offset < timedelta(seconds=1)
    for each in schedules:
        first, second = each.starts(after, 2)
        assert timedelta(0) <= first - after < every
        assert second - first == every


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", datetime(2026, 3, 29)),
        ("Europe/Berlin", datetime(2026, 10, 25)),
        ("America/New_York", datetime(2026, 3, 8)),
        ("America/New_York", datetime(2026, 11, 1)),
    ],
)
def test_half_days_meet_on_days_on_which_clocks_change(zone: str, day: datetime) -> None:
    """Starts are 12 hours of absolute time apart: a Monitor of 11 h 59 min leaves a minute, on such days too."""
    local = day.replace(tzinfo=ZoneInfo(zone))
    starts = half_days().starts((local - timedelta(days=1)).astimezone(UTC), 6)
    run = live(MonitorConfig(5 * MINUTE, 4 * MINUTE, None, HALF_DAY_RUN))
    assert run.state.stopped is Stop.BY_TIME
    for before, after in pairwise(starts):
        assert after - (before + timedelta(seconds=run.ended)) == MINUTE
    assert len({at.astimezone(ZoneInfo(zone)).utcoffset() for at in starts}) == 2


def test_half_days_lose_no_start() -> None:
    """A start that finds the one before still running waits for it, and one missed in an outage is made up for."""
    made = half_days(offset=timedelta(hours=6))
    assert (made.overlap, made.catch_up, made.offset) == (Overlap.BUFFER_ONE, timedelta(hours=12), timedelta(hours=6))


@pytest.mark.parametrize("cron", ["30 6 * * 1-5", "@daily", "*/15 8-18 * * MON,FRI", "0 0 1 * ?"])
def test_a_cron_expression_has_a_named_zone(cron: str) -> None:
    """Local time is that of a zone by its name."""
    assert Schedule(cron=(cron,), zone="Europe/Berlin").zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Give either `cron` or `every`"),
        ({"cron": ("@daily",), "every": MINUTE}, "Give either `cron` or `every`"),
        ({"cron": ("30 6 * *",)}, "Write five fields"),
        ({"cron": ("CRON_TZ=Europe/Berlin 30 6 * * *",)}, "and the zone in `zone`"),
        ({"cron": ("@daily",), "zone": "CEST"}, "as in Europe/Berlin"),
        ({"cron": ("@daily",), "zone": "+02:00"}, "as in Europe/Berlin"),
        ({"cron": ("@daily",), "offset": MINUTE}, "It belongs to `every`"),
        ({"every": timedelta(0)}, "at least a second"),
        ({"every": timedelta(seconds=1.5)}, "whole seconds"),
        ({"every": MINUTE, "offset": timedelta(seconds=0.5)}, "whole seconds"),
        ({"every": MINUTE, "zone": "Europe/Berlin"}, "has no zone"),
        ({"every": MINUTE, "offset": MINUTE}, "less than `every`"),
        ({"every": MINUTE, "offset": -MINUTE}, "less than `every`"),
        ({"every": MINUTE, "jitter": MINUTE}, "less than `every`"),
        ({"every": MINUTE, "jitter": -MINUTE}, "from 0"),
        ({"every": MINUTE, "catch_up": timedelta(0)}, "at least 10 seconds"),
    ],
)
def test_what_does_not_hold_is_refused(fields: dict[str, Any], said: str) -> None:
    """Each mistake in a schedule names the field, the value and what to write."""
    with pytest.raises(ProcessDeclarationError, match=said):
        Schedule(**fields)


@pytest.mark.parametrize(("count", "every"), [(0, MINUTE), (61, MINUTE)])
def test_too_few_and_too_many_cannot_be_staggered(count: int, every: timedelta) -> None:
    """Nothing to stagger, or starts less than a second apart, is refused."""
    with pytest.raises(ProcessDeclarationError):
        staggered(count, every)


def test_the_times_of_a_cron_are_the_engines_to_tell() -> None:
    """Cron is not read here: there is one reader of it, the engine."""
    with pytest.raises(ProcessDeclarationError, match="Ask the engine"):
        Schedule(cron=("@daily",)).starts(MIDNIGHT, 1)


def test_a_declared_schedule_is_known_by_what_it_says() -> None:
    """BP-30. Two that say the same are one; any other field makes another."""
    made = Schedule(every=timedelta(hours=1), jitter=timedelta(milliseconds=1500))
    assert made.digest() == Schedule(every=timedelta(minutes=60), jitter=timedelta(seconds=1.5)).digest()
    others = [
        replace(made, every=timedelta(hours=2)),
        replace(made, offset=timedelta(minutes=1)),
        replace(made, jitter=timedelta(seconds=1)),
        replace(made, overlap=Overlap.ALLOW_ALL),
        replace(made, catch_up=timedelta(hours=2)),
        Schedule(cron=("0 6 * * *",)),
        Schedule(cron=("0 6 * * *",), zone="Europe/Berlin"),
    ]
    assert len({each.digest() for each in (made, *others)}) == len(others) + 1
