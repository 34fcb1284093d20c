"""What answers about processes are made of."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.api.process_render import iso
from casework.graph.durations import seconds_of


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(hours=1, minutes=30, seconds=10), "PT1H30M10S"),
        (timedelta(0), "PT0S"),
        (timedelta(minutes=1), "PT1M"),
        (timedelta(days=2), "PT48H"),
        (timedelta(milliseconds=1500), "PT1.5S"),
        (timedelta(hours=11, minutes=59), "PT11H59M"),
    ],
)
def test_a_duration_is_written_as_iso_8601(duration: timedelta, text: str) -> None:
    assert iso(duration) == text


@given(st.timedeltas(timedelta(0), timedelta(days=3000)))
def test_what_is_written_is_read_as_the_same(duration: timedelta) -> None:
    """To the microsecond."""
    assert seconds_of(iso(duration)) == Decimal(duration // timedelta(microseconds=1)) / 1_000_000
