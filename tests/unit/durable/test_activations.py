"""Threads for workflow code: one at a time for a run, side by side for several."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from casework.durable.activations import Activations

WAIT_S = 20


class Run:
    """Stands for the SDK's record of a run."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.inside = threading.Event()
        self.may_end = threading.Event()

    def stay(self) -> str:
        """Begin, and end when told."""
        self.began.append("stay")
        self.inside.set()
        assert self.may_end.wait(WAIT_S)
        return "stayed"

    def leave(self) -> int:
        """How many have begun."""
        self.began.append("leave")
        return len(self.began)

    def fail(self) -> None:
        """Raise."""
        raise KeyError("fault")


def test_what_comes_for_a_run_waits_for_what_is_there() -> None:
    """The second begins when the first has ended, also where the first's future was given up."""
    run, other = Run(), Run()
    with Activations(4) as threads:
        staying = threads.submit(run.stay)
        assert run.inside.wait(WAIT_S)
        leaving = threads.submit(run.leave)
        assert threads.submit(other.leave).result(WAIT_S) == 1
        assert (run.began, leaving.done()) == (["stay"], False)
        run.may_end.set()
        assert (staying.result(WAIT_S), leaving.result(WAIT_S)) == ("stayed", 2)


def test_a_run_that_never_ends_takes_one_thread() -> None:
    """However often the engine asks to evict it; what it has given up meanwhile never begins."""
    stuck, other = Run(), Run()
    with Activations(2) as threads:
        staying = threads.submit(stuck.stay)
        assert stuck.inside.wait(WAIT_S)
        asked = [threads.submit(stuck.leave) for _ in range(5)]
        assert all(each.cancel() for each in asked[:-1])
        assert threads.submit(other.leave).result(WAIT_S) == 1
        stuck.may_end.set()
        assert (staying.result(WAIT_S), asked[-1].result(WAIT_S)) == ("stayed", 2)


def test_a_fault_leaves_the_run_free() -> None:
    """An error reaches the caller, and the next one begins."""
    run = Run()
    with Activations(2) as threads:
        with pytest.raises(KeyError, match="fault"):
            threads.submit(run.fail).result(WAIT_S)
        assert threads.submit(run.leave).result(WAIT_S) == 1


def test_what_was_given_up_before_it_began_never_begins() -> None:
    """A cancelled future whose turn has not come."""
    run, waiting = Run(), Run()
    with Activations(1) as threads:
        staying = threads.submit(run.stay)
        assert run.inside.wait(WAIT_S)
        given_up = threads.submit(waiting.leave)
        assert given_up.cancel()
        run.may_end.set()
        assert staying.result(WAIT_S) == "stayed"
    with pytest.raises(CancelledError):
        given_up.result(0)
    assert waiting.began == []
