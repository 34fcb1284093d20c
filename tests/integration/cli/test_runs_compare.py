"""`casework runs compare` against a served API."""

from __future__ import annotations

from uuid import uuid4

import pytest

from casework.cli import exits
from tests.integration.cli.conftest import Line

pytestmark = pytest.mark.usefixtures("served")


def ended(line: Line, to: str, command: str) -> str:
    """A run that a person has ended."""
    text = f'{{"to": "{to}", "amount": 12.10}}'
    run_id: str = line.json("runs", "start", "letter", "--input", text)["run_id"]
    assert line("runs", "watch", run_id, "--timeout", "30")[0] == 0
    assert line("review", command, run_id, "--reason", "seen", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", run_id, "--until", "end", "--timeout", "30")[0] == 0
    return run_id


def test_two_runs_side_by_side(line: Line) -> None:
    """What differs is marked, what is the same is not; a run beside itself is the same throughout."""
    left, right = ended(line, "Ada", "approve"), ended(line, "Bob", "reject")
    found = line.json("runs", "compare", left, right)
    assert (found["left"], found["right"]) == (left, right)
    facts = {one["key"]: one for one in found["facts"]}
    assert (facts["outcome"]["left"], facts["outcome"]["same"]) == ("approved", False)
    assert facts["workflow"]["same"]
    assert facts["status"]["same"]
    assert [(one["key"], one["same"]) for one in found["input"]] == [("amount", True), ("to", False)]
    assert found["steps"]
    code, out, _ = line("runs", "compare", left, right)
    assert code == 0
    assert "approved" in out
    itself = line.json("runs", "compare", left, left)
    parts = [one for part in ("facts", "input", "context", "steps") for one in itself[part]]
    assert all(one["same"] for one in parts)


def test_a_run_that_is_not_there_is_told(line: Line) -> None:
    code, _, err = line("runs", "compare", str(uuid4()), str(uuid4()))
    assert (code, "There is no run" in err) == (exits.USAGE, True)
    assert line("runs", "compare", str(uuid4()), "seven")[0] == exits.USAGE
