"""Which decision counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casework.durable.contracts import Decision
from casework.errors import BlankIdError, InputError
from casework.review import Accepted, Ignored, OpenReview, check_decision, command_name, judge

REVIEW = OpenReview("review-2", ("approve", "reject", "more_info"))
APPROVE = Decision("review-2", "decision-1", "approve", "", "ann")


def ignored(review: OpenReview | None, decision: Decision, seen: tuple[str, ...] = ()) -> str:
    verdict = judge(review, decision, seen)
    assert isinstance(verdict, Ignored)
    return verdict.reason


def test_a_decision_on_the_open_review_is_accepted() -> None:
    """DA-35. The run judges on its own state."""
    assert judge(REVIEW, APPROVE) == Accepted()


def test_a_stale_decision_is_ignored() -> None:
    """DA-35. A decision on an earlier review has no effect, and says which is current."""
    reason = ignored(REVIEW, replace(APPROVE, review_id="review-1"))
    assert "review-1 is not the current one, which is review-2" in reason


def test_a_repeated_decision_counts_once() -> None:
    """DA-36. The same decision_id is one decision."""
    assert "received before" in ignored(REVIEW, APPROVE, ("decision-1",))


def test_without_a_question_there_is_no_answer() -> None:
    assert "not waiting" in ignored(None, APPROVE)


def test_an_unknown_decision_is_ignored_and_the_choice_named() -> None:
    assert "choose approve, reject, more_info" in ignored(REVIEW, replace(APPROVE, command="aprove"))


def test_a_refused_decision_is_ignored_with_the_reason() -> None:
    """DA-14. At the turn limit more_info is refused with a clear message."""
    review = replace(REVIEW, refused={"more_info": "turn limit 5 is reached: approve or reject"})
    said = ignored(review, replace(APPROVE, command="more_info", reason="why?"))
    assert said == "turn limit 5 is reached: approve or reject"
    assert judge(review, APPROVE) == Accepted()


def test_a_decision_fits_its_schema() -> None:
    """AW-3. Decisions have their schema."""
    schema = {"properties": {"reason": {"type": "string", "minLength": 5}}}
    review = replace(REVIEW, schemas={"approve": schema})
    assert "approve: reason does not fit" in ignored(review, APPROVE)
    assert judge(review, replace(APPROVE, reason="good evidence")) == Accepted()


def test_a_pattern_of_a_decision_holds_up_nobody() -> None:
    """AW-3. The schema is judged inside the run."""
    review = replace(REVIEW, schemas={"approve": {"properties": {"reason": {"pattern": "^([a-z]+)*$"}}}})
    assert "reason does not fit" in ignored(review, replace(APPROVE, reason="a" * 3_000 + "!"))


@pytest.mark.parametrize("reason", ["", " ", "\n\t", "\x00", "\u200b"])
def test_more_info_needs_words(reason: str) -> None:
    """DA-13. The reason is what the agent is told."""
    decision = replace(APPROVE, command="more_info", reason=reason)
    with pytest.raises(InputError, match="needs a reason"):
        check_decision(decision)
    assert "needs a reason" in ignored(REVIEW, decision)


@pytest.mark.parametrize("field", ["review_id", "decision_id", "command", "reviewer"])
@pytest.mark.parametrize("value", ["", " ", "\t\n", "\x00", "\u200b", "\ufeff", "\u3000"])
def test_blank_ids_are_refused(field: str, value: str) -> None:
    changed: dict[str, Any] = {field: value}
    with pytest.raises(BlankIdError, match=field):
        check_decision(replace(APPROVE, **changed))


@pytest.mark.parametrize(
    ("field", "length"), [("review_id", 256), ("reviewer", 256), ("command", 256), ("reason", 4001)]
)
def test_what_is_too_long_is_refused(field: str, length: int) -> None:
    changed: dict[str, Any] = {field: "x" * length}
    with pytest.raises(InputError, match=f"{field} has {length} characters"):
        check_decision(replace(APPROVE, **changed))
    check_decision(replace(APPROVE, **{field: "x" * (length - 1)}))


@pytest.mark.parametrize(
    ("typed", "name"),
    [("more-info", "more_info"), (" Approve ", "approve"), ("REJECT", "reject"), ("more_info", "more_info")],
)
def test_shortcuts_are_read_as_people_type_them(typed: str, name: str) -> None:
    assert command_name(typed) == name


def test_a_decisions_own_name_is_taken_as_it_stands() -> None:
    assert command_name("Ask-Again", {"Ask-Again"}) == "Ask-Again"
