"""What a person sees of a run, above all what is to be approved."""

from typing import Any

import pytest
from tests.unit.cli.test_parts_view import EVALUATION

from casework.cli.run_view import print_run

REVIEW = {
    "review_id": "r-1",
    "path": "decision.1",
    "turn": 1,
    "status": "pending",
    "note": None,
    "decisions": ["approve"],
    "given": [],
}


def shown(capsys: pytest.CaptureFixture[str], **changed: Any) -> str:
    whole = {
        "run_id": "u-1", "workflow": "letter", "workflow_version": 2, "status": "AWAITING_REVIEW", "turn": 1,
        "turn_limit": 5, "user": "ada", "ended_at": None, "created_at": "2026-11-30T11:41:22+00:00",
        "doing": {"text": "it waits for a person, as intended"}, "input": {"to": "Ada"}, "review": REVIEW,
        "open_reviews": [REVIEW],
    }  # fmt: skip
    print_run({**whole, **changed})
    return capsys.readouterr().out


def test_the_recommendation_is_in_full_without_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Dear Ada,\n\n" + "very " * 100 + "truly yours"
    out = shown(capsys, recommendation=text, context={"letter": text, "price": {"sum": 12}})
    assert f"Recommendation\n  Dear Ada,\n\n  {'very ' * 100}truly yours\n" in out
    assert out.count("Dear Ada") == 1
    assert "Output price\n  sum: 12\n" in out


def test_policy_is_a_table_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(
        capsys,
        policy={"evaluation": EVALUATION, "model": None},
        evidence={"score": {"score": 665, "missing": {}}, "policy_lookup": EVALUATION},
        recommendation={"recommendation": "refer", "rationale": "Thin file."},
    )
    assert "Policy personal-loans v1 from governed. It says refer. Too low.\nRULE" in out
    assert out.count("minimum_score") == 1
    assert "  score: missing none, score 665\n" in out
    assert "Recommendation\n  recommendation: refer\n  rationale: Thin file.\n" in out


def test_the_reason_of_an_incident_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "it waits in task queue 'x', which no worker takes."
    held = {"kind": "unserved", "reason": reason, "at": "2026-11-30T11:41:22+00:00"}
    out = shown(capsys, incident=held, doing={"text": f"an incident holds it: {reason}"})
    assert out.count(reason) == 1
    assert "Incident: at 2026-11-30T11:41:22+00:00, kind unserved\n" in out
    out = shown(capsys, incident=held, doing={"text": "it ended"})
    assert out.count(reason) == 1


def test_times_have_a_zone_and_texts_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"command": "approve", "reviewer": "bo\x1b[2J", "at": "2026-11-30T12:41:22+01:00", "accepted": True,
             "reason": "two\nlines"}  # fmt: skip
    out = shown(capsys, open_reviews=[{**REVIEW, "note": "a\x07", "given": [given]}])
    assert "Started 2026-11-30 11:41:22Z; it waits" in out
    assert "approve by bo\ufffd[2J 2026-11-30 11:41:22Z: accepted; reason: two lines" in out
    assert "\x07" not in out
