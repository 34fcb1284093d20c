"""The form of a manual task on a terminal."""

from __future__ import annotations

import pytest

from casework.cli.output import gist
from casework.cli.review_view import print_review

FORM = {
    "question": "Transaction: 7\nthe amount is missing",
    "transaction": "7d1c",
    "status": "PROCESSING_IN_PROGRESS",
    "process": "errors",
    "task": "ask-about-error",
    "error": {
        "type": "BUSINESS",
        "code": "NO_AMOUNT",
        "process": "processing",
        "task": "check",
        "short": "the amount is missing",
    },
}
REVIEW = {
    "review_id": "r",
    "run_id": "q",
    "run_status": "AWAITING_REVIEW",
    "workflow": "manual-task",
    "node": "ask",
    "turn": 1,
    "status": "pending",
    "created_at": "2026-01-01T00:00:00Z",
    "decisions": ["abort", "clone-INTAKE_COMPLETED"],
    "recommendation": FORM,
}


def test_the_question_of_a_manual_task_is_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    """BP-27: what is asked, of which Transaction, with its error, and the words to answer with."""
    print_review(REVIEW)
    out = capsys.readouterr().out
    assert "Recommendation" not in out
    for part in ("Question", "the amount is missing", "7d1c", "PROCESSING_IN_PROGRESS", "BUSINESS", "NO_AMOUNT"):
        assert part in out
    assert "Commands: abort, clone-INTAKE_COMPLETED" in out


def test_in_the_list_a_form_is_a_line() -> None:
    """BP-27: of a failed Transaction what failed, where and why; of any other the first line of its question."""
    assert gist(FORM) == "NO_AMOUNT at processing/check: the amount is missing"
    asked = {name: value for name, value in FORM.items() if name != "error"}
    assert gist(asked) == "Transaction: 7"
    assert (
        gist({**asked, "question": "Pay?\x1b[2J " + "x" * 500 + "\nAll of it."}) == "Pay?\ufffd[2J " + "x" * 110 + "…"
    )
