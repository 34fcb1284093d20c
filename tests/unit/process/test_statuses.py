"""Statuses: the default set, a project's own, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from casework.errors import ProcessDeclarationError, TransitionError
from casework.process import ABORTED, COMPLETED, DEFAULT_STATUSES, ERROR_IN_PROGRESS, HAS_ERROR, StatusSet

HAPPY = (
    "INTAKE_IN_PROGRESS",
    "INTAKE_COMPLETED",
    "PROCESSING_IN_PROGRESS",
    "PROCESSING_COMPLETED",
    "SUBMISSION_IN_PROGRESS",
    "COMPLETED",
)


def test_the_default_set_has_the_nine_statuses_and_their_order() -> None:
    """BP-2. The nine default statuses; the happy path is legal, step by step, and no step of it can be left out."""
    assert set(DEFAULT_STATUSES.moves) == {*HAPPY, ABORTED, HAS_ERROR, ERROR_IN_PROGRESS}
    DEFAULT_STATUSES.check(None, HAPPY[0])
    for before, after in pairwise(HAPPY):
        DEFAULT_STATUSES.check(before, after)
    for before, after in zip(HAPPY, HAPPY[2:], strict=False):
        with pytest.raises(TransitionError):
            DEFAULT_STATUSES.check(before, after)


def test_an_error_has_one_way() -> None:
    """Every status of the normal flow may fail; what failed goes to the Error process and ends ABORTED."""
    for status in DEFAULT_STATUSES.working:
        DEFAULT_STATUSES.check(status, HAS_ERROR)
    DEFAULT_STATUSES.check(HAS_ERROR, ERROR_IN_PROGRESS)
    DEFAULT_STATUSES.check(ERROR_IN_PROGRESS, ABORTED)
    for status in (*DEFAULT_STATUSES.working, COMPLETED):
        with pytest.raises(TransitionError):
            DEFAULT_STATUSES.check(ERROR_IN_PROGRESS, status)


@pytest.mark.parametrize("terminal", [COMPLETED, ABORTED])
@pytest.mark.parametrize("after", [*HAPPY, ABORTED, HAS_ERROR, ERROR_IN_PROGRESS])
def test_nothing_follows_a_terminal_status(terminal: str, after: str) -> None:
    """From COMPLETED and ABORTED no status is legal, not even the same; the error says what to do."""
    with pytest.raises(TransitionError, match="terminal") as raised:
        DEFAULT_STATUSES.check(terminal, after)
    assert raised.value.details == {"status": terminal, "wanted": after, "allowed": []}


def test_an_illegal_transition_names_all_that_is_needed() -> None:
    """A task changes the status only legally: a refusal names both statuses, the allowed ones, the remedy."""
    with pytest.raises(TransitionError) as raised:
        DEFAULT_STATUSES.check("INTAKE_IN_PROGRESS", "PROCESSING_COMPLETED")
    assert str(raised.value) == (
        "A Transaction cannot go from status INTAKE_IN_PROGRESS to PROCESSING_COMPLETED; from INTAKE_IN_PROGRESS it "
        "may go to HAS_ERROR, INTAKE_COMPLETED. Choose one of these, or add the move to the project's StatusSet."
    )


def test_a_project_has_its_own_set() -> None:
    """BP-2. A project's own statuses and moves, with two ways, a way back and an end of its own."""
    own = StatusSet.of(
        {"NEW": {"CHECKED", "REJECTED"}, "CHECKED": ["NEW", COMPLETED]}, initial="NEW", terminal=["REJECTED"]
    )
    assert own.working == ("NEW", "CHECKED")
    assert own.terminal == {"REJECTED", COMPLETED, ABORTED}
    own.check("CHECKED", "NEW")
    own.check("CHECKED", "CHECKED")
    own.check("CHECKED", HAS_ERROR)
    with pytest.raises(TransitionError, match=r"cannot begin in status CHECKED\. Begin it in NEW"):
        own.check(None, "CHECKED")


def test_an_unknown_status_is_told_with_the_near_one() -> None:
    """A status that the set does not have is an error of the declaration, not of the Transaction."""
    with pytest.raises(ProcessDeclarationError, match=r"'INTAKE_COMPLETE'.*Did you mean 'INTAKE_COMPLETED'"):
        DEFAULT_STATUSES.check("INTAKE_IN_PROGRESS", "INTAKE_COMPLETE")


@pytest.mark.parametrize(
    ("moves", "options", "said"),
    [
        ({"new": COMPLETED}, {"initial": "new"}, "'new' is no usable name"),
        ({"A": HAS_ERROR}, {"initial": "A"}, "from A to HAS_ERROR is the platform's"),
        ({"A": COMPLETED, "HAS_ERROR": "A"}, {"initial": "A"}, "HAS_ERROR is the platform's"),
        ({"A": "B"}, {"initial": "A"}, "leads to 'B'"),
        ({"A": []}, {"initial": "A"}, "status A has no moves"),
        ({"A": COMPLETED}, {"initial": []}, "no status is initial"),
        ({"A": COMPLETED}, {"initial": "B"}, "initial status B has no moves"),
        ({"A": COMPLETED, "B": COMPLETED}, {"initial": "A"}, "status B is reached from no initial status"),
        ({"A": ["B", COMPLETED], "B": "B"}, {"initial": "A"}, "status B has no way to a terminal status"),
        ({"A": COMPLETED}, {"initial": "A", "terminal": ["A"]}, "has moves and is declared terminal"),
    ],
)
def test_a_set_that_does_not_hold_is_refused(moves: dict[str, Any], options: dict[str, Any], said: str) -> None:
    """Each mistake in a set of statuses is named with its remedy."""
    with pytest.raises(ProcessDeclarationError, match=said):
        StatusSet.of(moves, **options)
