"""Gaps in an audit trail are found."""

from typing import Any

import pytest

from casework.cli.audit_view import gaps


def trail(**changed: Any) -> dict[str, Any]:
    decision = {"accepted": True, "outcome": "approved"}
    attempts = [{"attempt": 1, "outcome": "LOST"}, {"attempt": 2, "outcome": "COMPLETED"}]
    step = {"path": "a.1/t.1", "state": "COMPLETED", "attempts": attempts}
    whole = {
        "run": {"outcome": "approved"},
        "reviews": [{"given": [decision]}],
        "events": [{"seq": 1}, {"seq": 2}],
        "evidence": [step],
        "model_calls": [],
    }
    return {**whole, **changed}


def test_a_whole_trail_has_no_gap() -> None:
    assert gaps(trail()) == []
    assert gaps(trail(run={"outcome": None}, reviews=[])) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reviews": []}, "no accepted decision"),
        ({"reviews": [{"given": [{"accepted": False, "outcome": "approved"}]}]}, "no accepted decision"),
        ({"events": [{"seq": 1}, {"seq": 3}]}, "without a gap"),
        ({"evidence": [{"path": "a.1/t.1", "state": "COMPLETED", "attempts": []}]}, "has 0 completed attempts"),
    ],
)
def test_what_is_missing_is_told(changed: dict[str, Any], told: str) -> None:
    (gap,) = gaps(trail(**changed))
    assert told in gap
