"""Waits that could never end, found before they begin.

What a node needs to end makes a graph. The end of a node needs the end of its body and of each child; a body needs
the end of every node that it awaits; the body of a queued Job needs the body whose turn it is. All of them are needed,
so a circle is a wait that never ends. Two things can close one: an await, and a Job that is put into the queue. Each
looks for the way back, from both sides in turn, so that the nearer end bounds the search and the usual wait, for a
handler just called, costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from casework.tasktree.errors import EndlessWaitError
from casework.tasktree.states import BODY_OVER, CLOSED, HOLDS, LENT, STARTED

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
    waiting = _waiting(waiter)
    if waiting is not None and _needs_something(awaited) and _leads((awaited, False), waiting):
        raise EndlessWaitError(
            f"{waiter!r} cannot await {awaited!r}, which can end only after it: that is queued behind the body of "
            f"{waiter!r}, or waits for it. Return a handler call from the Job's body and await there."
        )


def wait_as(
    waiter: TaskNode, awaited: TaskNode, future: asyncio.Future[None], *, receives: bool
) -> Generator[Any, None, None]:
    """Wait for `future`, the end of `awaited`, as the body of `waiter`, which gives its handler slot back meanwhile.

    Without `receives` it waits for no result, as one that terminates does. A wait that is cut off, as by a time-out,
    takes no slot again: the one that was waited for may hold it, and the body goes on to terminate that one.
    """
    if waiter._awaits_ is None:
        waiter._awaits_ = {}
    waiter._awaits_[future] = awaited
    if not receives:
        awaited._rarely_().bystanders[future] = waiter
    slots = waiter._commander_._slots
    if slots is not None and waiter._flags_ & HOLDS:
        slots.lend(waiter)
    try:
        yield from future
    finally:
        if waiter._awaits_ is not None:
            waiter._awaits_.pop(future, None)
        if not receives:
            del awaited._rarely_().bystanders[future]
    if slots is not None and waiter._flags_ & LENT and not waiter._awaits_ and not waiter._flags_ & BODY_OVER:
        yield from slots.take(waiter)


def check_place(parent: TaskNode, job: Job, head: Job) -> None:
    """That `job` may be queued as a child of `parent`, beside `head`, whose turn it is and whose body waits.

    Raises:
        EndlessWaitError: that body waits for `parent` to end, and so for `job`, which would be queued behind it.
    """
    if not _leads((head, True), (parent, False)):
        return
    raise EndlessWaitError(
        f"{job!r} cannot be queued below {parent!r}: {head!r} waits for that to end, and its body holds the queue. "
        "Return a handler call from that Job's body instead of awaiting it, or submit with another parent=."
    )


def _waiting(waiter: TaskNode) -> Thing | None:
    """What of `waiter` waits where it awaits: its body, or its end, by a callback; None where nothing depends on it."""
    if not waiter._flags_ & BODY_OVER:
        return waiter, True
    return (waiter, False) if waiter._state_.final and not waiter._flags_ & CLOSED else None


def _needs_something(node: TaskNode) -> bool:
    children = node._open_ if node._flags_ & BODY_OVER else node._open_ - 1
    return children > 0 or bool(node._awaits_) or (node._queues_ and not node._flags_ & STARTED)


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


def _bystanders(node: TaskNode) -> Iterator[tuple[asyncio.Future[None], TaskNode]]:
    return iter(node._rare_.bystanders.items() if node._rare_ is not None else ())


def _needs(node: TaskNode, body: bool) -> Iterator[Thing]:
    if not body:
        if node._flags_ & CLOSED:
            return
        if not node._flags_ & BODY_OVER:
            yield node, True
        for child in node._children_ or ():
            if not child._flags_ & CLOSED:
                yield child, False
        if not node._state_.final:
            return  # else its callbacks run
    for awaited in (node._awaits_ or {}).values():
        yield awaited, False
    if body and node._queues_ and not node._flags_ & STARTED and (head := node._commander_._queue.head) is not None:
        yield head, True


def _needed_by(node: TaskNode, body: bool) -> Iterator[Thing]:
    if not body:
        if node._parent_ is not None:
            yield node._parent_, False
        for future, waiter in (*(node._waiters_ or {}).items(), *_bystanders(node)):
            if waiter is not None and future in (waiter._awaits_ or ()) and (waiting := _waiting(waiter)) is not None:
                yield waiting
        return
    yield node, False
    queue = node._commander_._queue
    if queue.head is node:
        for job in queue:
            yield job, True
