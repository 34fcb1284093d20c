"""Gaps in an audit trail are found, and the trail can be read."""

from typing import Any

import pytest
from tests.unit.cli.test_parts_view import EVALUATION

from casework.cli.audit_view import gaps, print_trail

DONE: dict[str, Any] = {"path": "a.1/t.1", "state": "COMPLETED"}
TRIED = {"attempt": 1, "outcome": "COMPLETED"}


def trail(**changed: Any) -> dict[str, Any]:
    decision = {"accepted": True, "outcome": "approved"}
    attempts = [{"attempt": 1, "outcome": "LOST"}, {"attempt": 2, "outcome": "COMPLETED"}]
    step = {"path": "a.1/t.1", "state": "COMPLETED", "attempts": attempts, "taken_from": None}
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


def test_what_a_fork_took_over_has_no_attempt_and_is_no_gap(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-15. It was tried in the run where it was done, which is named."""
    step = {**DONE, "attempt": 2, "arguments": {}, "result": 1, "error": None, "attempts": [], "taken_from": "u-0"}
    assert gaps(trail(evidence=[step])) == []
    assert "a.1/t.1: COMPLETED at attempt 2, taken over from run u-0\n" in printed(capsys, evidence=[step])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reviews": []}, "no accepted decision"),
        ({"reviews": [{"given": [{"accepted": False, "outcome": "approved"}]}]}, "no accepted decision"),
        ({"events": [{"seq": 1}, {"seq": 3}]}, "without a gap"),
        ({"evidence": [{**DONE, "attempts": [], "taken_from": None}]}, "has 0 completed attempts"),
        ({"model_calls": [{**DONE, "attempts": [TRIED], "taken_from": "u-0"}]}, "has 1 completed attempts"),
    ],
)
def test_what_is_missing_is_told(changed: dict[str, Any], told: str) -> None:
    (gap,) = gaps(trail(**changed))
    assert told in gap


def printed(capsys: pytest.CaptureFixture[str], **changed: Any) -> str:
    at = "2026-11-30T11:41:22.5+00:00"
    run = {
        "run_id": "u-1", "workflow_name": "loan", "workflow_version": 1, "tenant": "default", "user_id": "ada",
        "actor": "bo", "created_at": at, "request": {}, "outcome": None, "ended_at": None, "status": "RUNNING",
        "failure": None, "forked_from_run_id": None, "forked_from_path": None,
    }  # fmt: skip
    used = {"model_calls": 0, "tool_calls": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0}
    empty: dict[str, Any] = {
        "run": run, "policies": [], "evidence": [], "model_calls": [], "reviews": [], "stray_decisions": [],
        "events": [], "metrics": {"run": used},
    }  # fmt: skip
    print_trail({**empty, **changed}, [])
    return capsys.readouterr().out


def test_empty_parts_say_so_and_nothing_has_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys)
    assert "Input: none\n" in out
    for part in ("Policy used", "Evidence", "Model calls", "Reviews", "Events"):
        assert f"\n{part}: none\n" in out
    assert "nothing" not in out
    assert "named no review" not in out


def test_policy_is_drawn_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    result = {**EVALUATION, "purpose": "car"}
    step = {"path": "a.1/p.1", "state": "COMPLETED", "attempt": 1, "arguments": {}, "error": None, "attempts": [],
            "taken_from": None}  # fmt: skip
    out = printed(capsys, evidence=[{**step, "result": result}])
    assert "    found: policy personal-loans v1 from governed. It says refer. Too low.\n    RULE" in out
    assert "\n    minimum_score  >=  700        665     fail\n" in out
    assert "    with: purpose car\n" in out


def test_a_review_shows_all_of_its_recommendation_and_a_rounded_wait(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"accepted": True, "command": "approve", "reviewer": "bo", "reason": "a\nb", "ignored": None,
             "created_at": "2026-11-30T11:41:22.5+00:00"}  # fmt: skip
    review = {"path": "d.1", "turn": 1, "review_id": "r-1", "status": "decided", "waited_seconds": 0.587654,
              "recommendation": "Dear Ada,\n\n" + "x" * 3000, "given": [given]}  # fmt: skip
    out = printed(capsys, reviews=[review])
    assert "decided, waited 0.6 s\n" in out
    assert f"      Dear Ada,\n\n      {'x' * 3000}\n" in out
    assert "    2026-11-30 11:41:22Z bo: approve, accepted; reason: a b\n" in out


def test_an_event_is_one_line_with_its_keys_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    event = {"seq": 1, "at": "2026-11-30T12:41:22+01:00", "kind": "agent.x", "path": "", "data": {"b": 1, "a": None}}
    assert "     1 2026-11-30 11:41:22Z agent.x b 1\n" in printed(capsys, events=[event])
