"""The destination as a witness: what counts as a call after the commit, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from casework.drills.arrivals import Span, late, overtaken
from casework.drills.destination import counts_of
from casework.drills.promises import BrokenOffError
from casework.durable.activities.faults import Passed

COMMITTED = 10.0
STEP = Span(1, COMMITTED)


def lines(pid: int, **at: float) -> list[Passed]:
    """What one process wrote down of a step: each point with its second."""
    return [Passed(point, "run-1", "a/charge.1", pid, second) for point, second in at.items()]


def test_a_call_after_the_commit_is_late() -> None:
    """DA-26. Repeats before it are not, however many there were."""
    assert late([2, 5, 10], STEP, []) == 0
    assert late([2, 10.001, 12], STEP, []) == 2


def test_a_step_that_is_not_committed_may_be_called() -> None:
    """Its attempts go on."""
    assert late([2, 500], Span(1, None), []) == 0


def test_calls_of_the_same_name_belong_to_the_step_that_was_begun_last() -> None:
    """Two turns read the same subject; the second call is the second step's own, a third after both is late once."""
    first, second = Span(1, 10), Span(20, 30)
    assert (late([5, 25], first, [second]), late([5, 25], second, [first])) == (0, 0)
    assert (late([5, 25, 31], first, [second]), late([5, 25, 31], second, [first])) == (0, 1)
    assert (late([5, 15, 25], first, [second]), late([5, 15, 25], second, [first])) == (1, 0)


def test_an_attempt_that_is_alive_at_another_ones_commit_is_overtaken() -> None:
    """DA-26. It may have been on its way to the destination, which cannot be called back."""
    assert overtaken([*lines(1, claimed=1, over=12), *lines(2, claimed=3, acted=9, committed=10.1, over=10.2)], 10) == 1
    within_one = [*lines(1, claimed=1, over=12), *lines(1, claimed=3, acted=9, committed=10.1, over=10.2)]
    assert overtaken(within_one, COMMITTED) == 1


@pytest.mark.parametrize(
    "passed",
    [
        lines(1, claimed=1, acted=9, committed=10.1, over=10.2),  # the one that committed
        lines(1, claimed=1, acted=9, committed=10.1) + lines(2, over=14),  # killed; the next one found the result
        lines(1, claimed=1) + lines(2, claimed=3, acted=9, committed=10.1, over=10.2),  # killed before
        lines(1, claimed=1, over=2) + lines(1, claimed=3, acted=9, committed=10.1, over=10.2),  # failed before
        lines(1, claimed=11, over=12),  # begun when it was committed
    ],
)
def test_whoever_is_not_overtaken_has_no_excuse(passed: list[Passed]) -> None:
    """DA-26. A second call of such a one breaks the promise."""
    assert overtaken(passed, COMMITTED) == 0


def answer(**more: Any) -> dict[str, Any]:
    return {"calls": {"a": 2}, "effects": {"a": 1}, "in_flight": [], **more}


def test_a_destination_may_tell_no_times() -> None:
    """Then there are none, which is not the same as no call."""
    assert counts_of(answer()).arrivals is None
    assert counts_of(answer(arrivals={"a": [7, 5.5]})).arrivals == {"a": [5.5, 7]}


@pytest.mark.parametrize("arrivals", [{}, {"a": [1]}, {"a": [1, 2], "b": [3]}])
def test_a_destination_that_tells_some_times_is_no_witness(arrivals: dict[str, list[float]]) -> None:
    """A call without a time could be the one that matters."""
    with pytest.raises(BrokenOffError, match="for each call"):
        counts_of(answer(arrivals=arrivals))
