"""How dataclasses of the contracts are written into histories, and read again."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pytest

from casework.durable.contracts import (
    CancelRequest,
    Carried,
    ModelCall,
    ModelReply,
    Owner,
    RunEnd,
    RunStart,
    Say,
    ToolCall,
    ToolReply,
    ToolRequest,
)
from casework.durable.converter import DATA_CONVERTER
from casework.settings import HistorySettings
from casework.values import loads

OWNER = Owner("default", "405e47b0-56da-55b3-9294-318a45f19e79")
CALL = ToolCall(OWNER, "underwrite.1/exchange.1/credit.1", "loan", 1, "underwrite", "underwriter", 1, "credit")
PART = Carried(
    part=2,
    since="2026-11-30T18:00:00.000001+00:00",
    state={"context": {"ratio": Decimal("37.90")}},
    counters={"": {"act": 1}, "act.1": {"exchange": 3}},
    journal={"version": 4, "row": None},
    inbox={"answers": [["d1", "hash", False, None]]},
    outbox=({"entry": "log", "at": "now"},),
    at_rest="act.1",
    done=3,
    cancel=CancelRequest("olga", "enough"),
)
VALUES: list[Any] = [
    RunStart("r", "default", "ann", {"amount": Decimal("12000.00")}, {}, 1),
    RunStart("r", "default", "ann", {}, {}, 1, turn_limit=0, model="openai:x"),
    RunStart("r", "default", "ann", {}, {}, 1, carried=PART),
    ModelCall(OWNER, "p", "loan", 1, "n", "a", 1, 0, 2, say=(Say(1), Say(2, "why?")), context={"input": {"a": None}}),
    ModelReply(output=False),
    ModelReply((ToolRequest(0, "call_1", "credit"),), tokens_in=5),
    CALL,
    ToolReply("COMPLETED", result=0),
    ToolReply("FAILED", error=""),
    RunEnd("COMPLETED", outcome="approved"),
]


def test_runs_say_nothing_of_bounds_that_are_the_settings_defaults() -> None:
    """DA-20. The bounds of a history travel in a run's input; the defaults of both are one."""
    bounds, start = HistorySettings(), VALUES[0]
    assert (bounds.roll_over_events, bounds.roll_over_bytes) == (start.roll_over_events, start.roll_over_bytes)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_written_is_read_back_the_same(value: Any) -> None:
    """Whatever a step says, its defaults included, control flow reads again on replay."""
    converter = DATA_CONVERTER.payload_converter
    (payload,) = converter.to_payloads([value])
    assert converter.from_payloads([payload], [type(value)]) == [value]


def test_defaults_are_left_out_and_filled_in() -> None:
    """A history holds what a step says and not what it leaves open; one that holds all of it reads alike."""
    converter = DATA_CONVERTER.payload_converter
    (payload,) = converter.to_payloads([CALL])
    assert set(loads(payload.data)) == {
        *("owner", "path", "workflow", "workflow_version", "node", "agent", "turn", "name"),
    }
    (whole,) = converter.to_payloads([asdict(CALL)])
    assert len(whole.data) > len(payload.data)
    assert converter.from_payloads([whole], [ToolCall]) == [CALL]
