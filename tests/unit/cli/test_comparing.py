"""Two runs as the API tells them, put side by side."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casework.cli.comparing import comparison, print_comparison


def run(run_id: str, **changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "run_id": run_id, "workflow": "loan", "workflow_version": 1, "status": "COMPLETED", "outcome": "approved",
        "failure": None, "user": "ada", "model": None, "turn": 1, "loop_count": 3, "tokens_in": 10, "tokens_out": 5,
        "cost": Decimal("0.10"), "input": {"amount": Decimal("12.10")}, "context": {},
        "created_at": "2026-11-30T11:41:22+00:00", "ended_at": "2026-11-30T12:41:24.500000+01:00",
    }  # fmt: skip
    return {**whole, **changes}


def step(path: str, **changes: Any) -> dict[str, Any]:
    tries = [{"tokens_in": 3, "tokens_out": 1, "cost": Decimal("0.01")}] * changes.get("attempt", 1)
    whole: dict[str, Any] = {
        "path": path, "name": "score", "kind": "tool", "state": "COMPLETED", "attempt": 1, "arguments": {"id": "A-1"},
        "result": {"score": 665}, "error": None, "latency_ms": 40, "attempts": tries,
    }  # fmt: skip
    return {**whole, **changes}


def by(found: Any, part: str, key: str = "key") -> dict[str, Any]:
    return {one[key]: one for one in found[part]}


def test_facts_stand_side_by_side() -> None:
    """Status, outcome, tokens and time of both, and whether they are the same."""
    found = comparison(run("l"), run("r", outcome="declined", ended_at=None, status="AWAITING_REVIEW"), [], [])
    facts = by(found, "facts")
    assert (found["left"], found["right"]) == ("l", "r")
    assert facts["outcome"] == {"key": "outcome", "same": False, "left": "approved", "right": "declined"}
    assert facts["duration_ms"] == {"key": "duration_ms", "same": False, "left": 2500, "right": None}
    assert facts["tokens_in"]["same"]
    assert not facts["status"]["same"]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": {"x": 1, "y": [None]}}, {"a": {"y": [None], "x": 1}}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ({}, {"a": None}, False),
        ({"a": Decimal("1.0")}, {"a": Decimal("1.0")}, True),
    ],
)
def test_outputs_are_the_same_in_their_json(left: Any, right: Any, same: bool) -> None:
    """The order of keys is nothing; an output that is null is not one that is not there."""
    (one,) = by(comparison(run("l", context=left), run("r", context=right), [], []), "context").values()
    assert one["same"] is same
    assert ("left" in one, "right" in one) == ("a" in left, "a" in right)


def test_steps_are_matched_by_path() -> None:
    """A step of one run alone stands where it came; time and attempts do not make steps different."""
    left = [step("a.1"), step("b.1"), step("d.1")]
    right = [step("z.1"), step("a.1", attempt=2, latency_ms=7), step("c.1"), step("d.1", result={"score": 5})]
    found = comparison(run("l"), run("r"), left, right)
    steps = by(found, "steps", "path")
    assert list(steps) == ["z.1", "a.1", "c.1", "b.1", "d.1"]
    assert [(one["same"], "left" in one, "right" in one) for one in steps.values()] == [
        (False, False, True), (True, True, True), (False, False, True), (False, True, False), (False, True, True),
    ]  # fmt: skip
    assert steps["a.1"]["right"]["tokens_in"] == 6, "of all attempts together"
    assert steps["d.1"]["right"]["result"] == {"score": 5}


def test_other_arguments_are_another_step() -> None:
    """The same result to another question is a difference."""
    (one,) = by(comparison(run("l"), run("r"), [step("a.1")], [step("a.1", arguments={})]), "steps", "path").values()
    assert one["same"] is False


@pytest.mark.parametrize(("output", "asked", "same"), [("hm", "look", True), ("ha", "look", False), ("hm", "x", False)])
def test_model_calls_are_compared_by_what_they_say(output: str, asked: str, same: bool) -> None:
    """Ids of tool calls and tokens are of no weight; the words and the tools asked for are."""

    def call(call_id: str, tokens: int, output: str, name: str) -> dict[str, Any]:
        requests = [{"index": 0, "call_id": call_id, "name": name}]
        return step("a.1", kind="model", result={"output": output, "requests": requests, "tokens_in": tokens})

    pair = [call("c-1", 5, "hm", "look")], [call("c-2", 6, output, asked)]
    (one,) = by(comparison(run("l"), run("r"), *pair), "steps", "path").values()
    assert one["same"] is same


def test_the_print_marks_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    """One table a part, `*` at what differs, and the steps counted; nobody's text steers the terminal."""
    wrong = step("b.1", state="FAILED", attempt=3, result=None, error="no\x1b[2J file")
    steps = [step("a.1"), step("b.1")], [step("a.1"), wrong, step("c.1")]
    print_comparison(comparison(run("l"), run("r", context={"letter": "Dear"}), *steps))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "outcome approved approved" in lines
    assert "* letter (not there) Dear" in lines
    assert "a.1 COMPLETED, 40 ms, 3+1 tokens: score 665 COMPLETED, 40 ms, 3+1 tokens: score 665" in lines
    assert any(line.startswith("* b.1") and "FAILED, 3 attempts, 40 ms" in line for line in lines)
    assert "* c.1 (not there) COMPLETED, 40 ms, 3+1 tokens: score 665" in lines
    assert lines[-1] == "Steps: 1 the same, 1 different, 0 of the left run alone, 1 of the right run alone."
    assert not any("\x1b" in line for line in lines)


def test_the_print_cuts_what_is_long(capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a pipe: two sides of any length stand beside each other. The comparison itself stays whole."""
    letters = [run(side, context={"letter": side * 900}) for side in "lr"]
    steps = [[step("a.1", result=side * 900)] for side in "lr"]
    found = comparison(letters[0], letters[1], *steps)
    print_comparison(found)
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) < 160
    assert "l" * 900 in str(found)
