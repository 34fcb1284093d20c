"""The state's journey through JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casework.errors import UnserialisableError
from casework.graph.engine import Answered, EngineState, advance, start
from casework.graph.manifests import AiWorkflowSpec
from casework.values import dumps, loads


@pytest.mark.parametrize(
    "value",
    [0.1, 1e300, Decimal("1.10"), 10**30, "a\x00b", "\ud800", None, [1.5, {"x": 2.5}], float("nan"), "é漢😀", (1, 2)],
)
def test_a_state_equals_itself_after_json(loan: dict[str, Any], value: Any) -> None:
    spec = AiWorkflowSpec.model_validate(loan)
    state, _ = advance(spec, start(spec, {"amount": value})[0], Answered(value))
    assert EngineState.from_plain(loads(dumps(state.to_plain()))) == state


def test_numbers_keep_their_digits(loan: dict[str, Any]) -> None:
    state, _ = start(AiWorkflowSpec.model_validate(loan), {"amount": Decimal("7600.50"), "ratio": 0.379})
    assert state.context["input"] == {"amount": Decimal("7600.50"), "ratio": Decimal("0.379")}
    assert str(state.context["input"]["amount"]) == "7600.50"


def test_a_state_of_another_release_can_be_read() -> None:
    """DA-20. Missing fields have their defaults, unknown ones are dropped."""
    assert EngineState.from_plain({"current_node": "a", "later": 1}) == EngineState(current_node="a")
    assert EngineState.from_plain({}) == EngineState()


def test_what_is_not_plain_is_refused_at_once(loan: dict[str, Any]) -> None:
    spec = AiWorkflowSpec.model_validate(loan)
    with pytest.raises(UnserialisableError):
        advance(spec, start(spec, {})[0], Answered(object()))
