"""Waits that could never end, found before they begin.

What a node needs to end makes a graph. The end of a node needs the end of its body and of each child; a body needs
the end of every node that it awaits; the body of a queued Job needs the body whose turn it is. All of them are needed,
so a circle is a wait that never ends. Two things can close one: an await, and a Job that is put into the queue. Each
looks for the way back, from both sides in turn, so that the nearer end bounds the search and the usual wait, for a
handler just called, costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from casework.tasktree.errors import EndlessWaitError
from casework.tasktree.states import BODY_OVER, STARTED, NodeState

if TYPE_CHECKING:
    from casework.tasktree.job import Job
    from casework.tasktree.node import TaskNode

Thing = tuple["TaskNode", bool]
"""The body of a node (True), or its end (False)."""


def check_wait(waiter: TaskNode, awaited: TaskNode) -> None:
    """That `waiter` may await `awaited`.

    Raises:
        EndlessWaitError: `awaited` cannot end before the body of `waiter` does.
    """
    if waiter._flags & BODY_OVER or not _needs_something(awaited):
        return
    if _leads((awaited, False), (waiter, True)):
        raise EndlessWaitError(
            f"{waiter!r} cannot await {awaited!r}, which can end only after it: that is queued behind the body of "
            f"{waiter!r}, or waits for it. Return a handler call from the Job's body and await there."
        )


def check_place(parent: TaskNode, job: Job) -> None:
    """That `job` may be queued as a child of `parent`, beside the body whose turn it is.

    Raises:
        EndlessWaitError: that body waits for `parent` to end, and so for `job`, which would be queued behind it.
    """
    head = parent._commander._queue.head
    if head is None or not head._awaits or not _leads((head, True), (parent, False)):
        return
    raise EndlessWaitError(
        f"{job!r} cannot be queued below {parent!r}: {head!r} waits for that to end, and its body holds the queue. "
        "Return a handler call from that Job's body instead of awaiting it, or submit with another parent=."
    )


def _needs_something(node: TaskNode) -> bool:
    return node._open > 1 or bool(node._awaits) or (node._queues and not node._flags & STARTED)


def _leads(start: Thing, goal: Thing) -> bool:
    """Whether `start` needs `goal`, in however many steps."""
    ahead, behind = _Front(start, _needs), _Front(goal, _needed_by)
    while True:
        for front, other in ((ahead, behind), (behind, ahead)):
            found = front.step()
            if found is None:
                return False
            if found in other.seen:
                return True


class _Front:
    """What was reached from one side."""

    def __init__(self, start: Thing, follow: Callable[[TaskNode, bool], Iterator[Thing]]) -> None:
        self._follow = follow
        self._ways = [iter((start,))]
        self.seen: set[tuple[int, bool]] = set()

    def step(self) -> tuple[int, bool] | None:
        """One more thing; None when there is none."""
        while self._ways:
            for node, body in self._ways[-1]:
                key = (id(node), body)  # not the node, whose class may compare its objects in a way of its own
                if key not in self.seen:
                    self.seen.add(key)
                    self._ways.append(self._follow(node, body))
                    return key
            self._ways.pop()
        return None


def _needs(node: TaskNode, body: bool) -> Iterator[Thing]:
    if not body:
        if not node._flags & BODY_OVER:
            yield node, True
        for child in node._children or ():
            if child._state is NodeState.ACTIVE:
                yield child, False
        return
    for awaited in (node._awaits or {}).values():
        yield awaited, False
    if node._queues and not node._flags & STARTED and (head := node._commander._queue.head) is not None:
        yield head, True


def _needed_by(node: TaskNode, body: bool) -> Iterator[Thing]:
    if not body:
        if node._parent is not None:
            yield node._parent, False
        for waiter in (node._waiters or {}).values():
            if waiter is not None and not waiter._flags & BODY_OVER:
                yield waiter, True
        return
    yield node, False
    queue = node._commander._queue
    if queue.head is node:
        for job in queue:
            yield job, True
