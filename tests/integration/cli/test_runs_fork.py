"""`casework runs fork` against a served API."""

from __future__ import annotations

import pytest

from casework.cli import exits
from tests.integration.cli.conftest import Line
from tests.integration.cli.test_runs_compare import ended

pytestmark = pytest.mark.usefixtures("served")


def test_a_fork_from_the_command_line(line: Line) -> None:
    """AW-15. Forked with an edit, answered otherwise, and compared with the run that it came from."""
    run_id = ended(line, "Ada", "approve")
    text = 'input={"to": "Bob", "amount": 12.10}'
    code, out, err = line("runs", "fork", run_id, "--step", "decision.1", "--context", text, "--key", "k1")
    assert code == 0, err
    assert f"begins in decision.1 of run {run_id}" in out
    made = line.json("runs", "fork", run_id, "--step", "decision.1", "--context", text, "--key", "k1")
    fork = made["run_id"]
    assert fork in out
    assert line("runs", "watch", fork, "--timeout", "30")[0] == 0
    assert line("review", "reject", fork, "--reason", "seen", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", fork, "--until", "end", "--timeout", "30")[0] == 0
    assert f"Forked from decision.1 of run {run_id}" in line("runs", "show", fork)[1]
    assert f"Fork {fork} from decision.1: COMPLETED" in line("runs", "show", run_id)[1]
    found = line.json("runs", "compare", run_id, fork)
    assert found["forked"] == {"fork": "right", "of": "left", "path": "decision.1"}
    assert {one["key"]: one["right"] for one in found["facts"]}["outcome"] == "declined"
    assert "The right run was forked from decision.1 of the left run." in line("runs", "compare", run_id, fork)[1]


def test_what_does_not_hold_is_told(line: Line) -> None:
    """AW-15. An edit that is no JSON never leaves; a step that is not there is told with the nearest."""
    run_id = ended(line, "Ada", "approve")
    code, _, err = line("runs", "fork", run_id, "--context", "input=Bob")
    assert (code, "is not JSON" in err) == (exits.USAGE, True)
    code, _, err = line("runs", "fork", run_id, "--context", "input")
    assert (code, "is not KEY=JSON" in err) == (exits.USAGE, True)
    code, _, err = line("runs", "fork", run_id, "--context", "input=1", "--context", "input=2")
    assert (code, "'input' is given twice" in err) == (exits.USAGE, True)
    code, _, err = line("runs", "fork", run_id, "--step", "decision.2")
    assert (code, "Did you mean 'decision.1'" in err) == (exits.USAGE, True)
