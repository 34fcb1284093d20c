"""What workflows will carry from history to history: the states of Monitors and trays come back as they went in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.unit.process.lines import Join, Split, plain, process

from casework.durable.converter import DATA_CONVERTER
from casework.process.lines import Line
from casework.process.monitor_clock import MonitorState, Stop
from casework.process.walk import Entry, Left, Parted, Passed, TrayState, advance, due, enter

LINE = Line(process(plain("a"), Split, plain("b"), Join)).shape
ONE, TWO, THREE, FOUR = (UUID(int=number) for number in range(1, 5))


def travelled() -> TrayState:
    state = enter(LINE, [Entry(ONE, "a"), Entry(TWO, "a", skip_until="b")])
    state = advance(LINE, state, {ONE: Passed("split")})
    state = advance(LINE, state, {ONE: Parted("b", (THREE, FOUR))})
    return advance(LINE, state, {TWO: Left("bad", "siblings"), THREE: Left("bad", "siblings"), FOUR: Passed("b")})


@pytest.mark.parametrize(
    "value",
    [
        travelled(),
        travelled().travellers[0],
        MonitorState(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 1, 2, 3, 4, tzinfo=UTC), 7, Stop.BY_TIME),
        LINE,
        due(LINE, travelled()),
        due(LINE, enter(LINE, [Entry(ONE, "a"), Entry(TWO, "b")])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_state_comes_back_as_it_went_in(value: Any) -> None:
    """Through the converter of histories, by its type: the walk and the clock go on where they were."""
    converter = DATA_CONVERTER.payload_converter
    (payload,) = converter.to_payloads([value])
    assert converter.from_payloads([payload], [type(value)]) == [value]
