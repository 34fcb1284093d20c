"""Error policies: what follows a failure, and which answers are on offer."""

from __future__ import annotations

import pytest

from casework.errors import BusinessError, ExpressionError, ProcessDeclarationError, RetryableError, TransitionError
from casework.process.policies import DEFAULT_POLICY, Answer, ErrorPolicy, Next, OnError, nearest


def test_by_default_a_failure_is_held_at_once() -> None:
    """The first failure of either type makes the Transaction HAS_ERROR; abort and clone are on offer."""
    assert {DEFAULT_POLICY.judge(error, 1) for error in (BusinessError("x"), TimeoutError())} == {Next.HOLD}
    assert DEFAULT_POLICY.answers == (Answer.ABORT, Answer.CLONE)


@pytest.mark.parametrize(
    ("on_error", "then"),
    [(OnError.HOLD, Next.HOLD), (OnError.FAIL_FAST, Next.HALT), (OnError.LOG_AND_FORGET, Next.FORGET)],
)
def test_application_errors_are_tried_again_and_business_errors_never(on_error: OnError, then: Next) -> None:
    """The retries come first, for APPLICATION errors alone; then what the policy says."""
    policy = ErrorPolicy(on_error, retries=2)
    for error in (TimeoutError("down"), RetryableError("down")):
        assert [policy.judge(error, attempt) for attempt in (1, 2, 3)] == [Next.AGAIN, Next.AGAIN, then]
    same_each_time = (BusinessError("bad"), TransitionError("illegal"), ExpressionError("no such key"))
    assert [policy.judge(error, 1) for error in same_each_time] == [then] * 3


def test_more_answers_are_on_offer_where_the_policy_says_so() -> None:
    """Resuming and completing by hand are off unless they are put on."""
    assert ErrorPolicy(resume=True, complete_by_hand=True).answers == tuple(Answer)


def test_the_nearest_policy_counts() -> None:
    """A Task's own goes before its process's, that before the project's."""
    task, project = ErrorPolicy(retries=1), ErrorPolicy(retries=2)
    assert nearest([task, None, project]) is task
    assert nearest([None, None, project]) is project
    assert nearest([None]) is DEFAULT_POLICY


@pytest.mark.parametrize("retries", [-1, 101, True, "2"])
def test_retries_are_bounded(retries: object) -> None:
    """A number of retries that is none is refused where it is written."""
    with pytest.raises(ProcessDeclarationError, match="whole number from 0 to 100"):
        ErrorPolicy(retries=retries)  # type: ignore[arg-type]  # the mistake
