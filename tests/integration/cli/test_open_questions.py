"""Answers by the id of a run: where it asks several questions at once, and where a run below it asks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from casework.cli import exits
from tests.integration.cli.conftest import Line

pytestmark = pytest.mark.usefixtures("served")
PATIENCE_S = 60

MANIFESTS = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: two}
spec:
  initialNode: ask
  nodes:
    - id: ask
      type: PARALLEL
      outputKey: answers
      branches:
        - {id: money, type: HUMAN_APPROVAL, decisions: [{name: "yes"}, {name: "no"}]}
        - {id: law, type: HUMAN_APPROVAL, decisions: [{name: "yes"}, {name: "no"}]}
  edges: [{from: ask, to: end}]
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: above}
spec:
  initialNode: below
  nodes: [{id: below, type: SUBWORKFLOW, workflowRef: two, outputKey: answered}]
  edges: [{from: below, to: end}]
"""


def started(line: Line, folder: Path, workflow: str) -> str:
    (folder / "two.yaml").write_text(MANIFESTS)
    code, _, err = line("apply", "-f", "two.yaml")
    assert code == 0, err
    run_id: str = line.json("runs", "start", workflow, "--input", "{}")["run_id"]
    return run_id


def asked(line: Line, number: int) -> list[dict[str, Any]]:
    """The reviews that wait, once there are so many."""
    until = time.monotonic() + PATIENCE_S
    while len(found := line.json("review", "list")["items"]) < number:
        assert time.monotonic() < until, found
    return list(found)


def test_a_run_with_two_questions_is_not_answered_by_its_own_id(line: Line, folder: Path) -> None:
    """No question is chosen for the reviewer: both are named, and each is answered by its own id."""
    run_id = started(line, folder, "two")
    both = asked(line, 2)
    code, _, err = line("review", "decide", run_id, "yes")
    assert code == exits.CONFLICT
    assert "asks 2 questions" in err
    assert all(f"{each['review_id']} at {each['path']}" in err for each in both)
    shown = line("runs", "show", run_id)[1]
    assert all(f"Review {each['review_id']} at {each['path']}" in shown for each in both)
    assert [each["NODE"] for each in _rows(line("review", "list")[1])] == [each["node"] for each in both]
    law = next(each for each in both if each["node"] == "law")
    assert line("review", "decide", law["review_id"], "no", "--wait", "--timeout", "20")[0] == 0
    assert line("review", "decide", run_id, "yes", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", run_id, "--until", "end", "--timeout", "30")[0] == 0


def test_a_run_that_waits_for_one_below_says_which(line: Line, folder: Path) -> None:
    """It is not the run above that asks; the error names the run that it waits for."""
    run_id = started(line, folder, "above")
    [below] = {each["run_id"] for each in asked(line, 2)}
    code, _, err = line("review", "decide", run_id, "yes")
    assert code == exits.CONFLICT
    assert f"waits for run {below}" in err


def _rows(text: str) -> list[dict[str, str]]:
    """A printed table."""
    head, *lines = [line for line in text.splitlines() if line.strip()]
    starts = [head.index(name) for name in head.split("  ") if name.strip()]
    names = [name.strip() for name in head.split("  ") if name.strip()]
    ends = [*starts[1:], None]
    return [
        {name: line[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)} for line in lines
    ]
