"""Limits: how many handlers run at one time, and how long a node may take.

A handler that waits for another node gives its slot back meanwhile, and takes one again before it goes on, ahead of
those that have not begun. So handlers that wait for handlers never use all slots up, however deep they are nested.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from casework.tasktree.errors import OptionError, TimeLimitError
from casework.tasktree.mechanics import disown, doom_children
from casework.tasktree.paths import path_of
from casework.tasktree.states import BODY_OVER, DOOMED, FAILED, HOLDS, LENT, SEALED, NodeState

if TYPE_CHECKING:
    from casework.tasktree.handlers import HandlerNode
    from casework.tasktree.node import TaskNode

WAITS_FOR = "waits_for"
"""The key of a node's data that names the limit which the node waits for."""
A_SLOT = "a handler slot"


class Timer(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> object:
        """Do not call after all."""


class Clock(Protocol):
    """Where a Commander has its time from, in seconds from any start. An asyncio event loop is one."""

    def time(self) -> float:
        """Now."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call `callback(*args)` once, `delay` seconds from now, in the event loop's thread."""


class Slots:
    """The handler slots of one Commander."""

    __slots__ = ("_free", "_resuming", "_starting")

    def __init__(self, most: int) -> None:
        self._free = most
        self._resuming: deque[asyncio.Future[None]] = deque()
        self._starting: deque[HandlerNode[Any]] = deque()

    def start(self, node: HandlerNode[Any]) -> None:
        """Start the body of `node`, now or when there is a slot."""
        if self._free:
            self._free -= 1
            self._launch_(node)
            return
        rare = node._rarely_()
        rare.context = contextvars.copy_context()
        rare.data[WAITS_FOR] = A_SLOT
        self._starting.append(node)

    def give_back(self, node: TaskNode) -> None:
        """The body of `node` is over."""
        node._flags_ &= ~HOLDS
        self._pass_on()

    def lend(self, node: TaskNode) -> None:
        """The body of `node` waits for another node."""
        node._flags_ = node._flags_ & ~HOLDS | LENT
        self._pass_on()

    def take(self, node: TaskNode) -> Generator[Any, None, None]:
        """Wait until there is a slot for `node` to go on in."""
        if self._free:
            self._free -= 1
        else:
            yield from self._wait(node)
        if node._flags_ & (HOLDS | BODY_OVER):
            self._pass_on()  # another wait of the same body took one meanwhile, or the body has ended
            return
        node._flags_ = node._flags_ & ~LENT | HOLDS

    def _wait(self, node: TaskNode) -> Generator[Any, None, None]:
        future: asyncio.Future[None] = node._commander_._create_future()
        self._resuming.append(future)
        node._rarely_().data[WAITS_FOR] = A_SLOT
        try:
            yield from future
        except BaseException:
            if not future.cancelled() and future.done():
                self._pass_on()
            raise
        finally:
            node._rarely_().data.pop(WAITS_FOR, None)

    def _pass_on(self) -> None:
        while self._resuming:
            future = self._resuming.popleft()
            if not future.done():
                future.set_result(None)
                return
        while self._starting:
            node = self._starting.popleft()
            if not node._flags_ & BODY_OVER:
                node._rarely_().data.pop(WAITS_FOR, None)
                self._launch_(node)
                return
        self._free += 1

    def _launch_(self, node: HandlerNode[Any]) -> None:
        node._flags_ |= HOLDS
        rare = node._rare_
        context = None if rare is None else rare.context
        if rare is not None:
            rare.context = None
        body = node._drive_()
        try:
            node._task_ = node._commander_._create_task(body, name=node._name_, context=context)
        except BaseException:
            body.close()
            disown(node)  # no more stack or memory: as if it had not been called
            raise


def slots_for(most: object) -> Slots | None:
    """The slots of a Commander that may run `most` handlers at one time; None where there is no limit.

    Raises:
        OptionError: `most` is no whole number above zero.
    """
    if most is None:
        return None
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise OptionError(f"max_handlers={most!r}: give a whole number from 1, or None for no limit.")
    return Slots(most)


def checked_seconds(seconds: object) -> float:
    """`seconds` if it can limit a node's time.

    Raises:
        OptionError: it is no finite number above zero.
    """
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise OptionError(f"within({seconds!r}): a time limit is a number of seconds above zero.")
    return float(seconds)


def arm(node: TaskNode, seconds: float) -> None:
    """From now on `node` has so many seconds to end, with all below it."""
    node._rarely_().timers.append(node._commander_._call_later(seconds, _expire, node, seconds))


def _expire(node: TaskNode, seconds: float) -> None:
    """Fail `node`, which has not ended in time: its body is cancelled, and all below it is terminated."""
    if node._state_ is not NodeState.ACTIVE or node._flags_ & (FAILED | DOOMED) or node._commander_._drops():
        return
    where = repr(path_of(node)) if not node._is_root_ else "the Commander"
    error = TimeLimitError(f"{where} did not end within {seconds:g} s and was ended. Give it more time, or less to do.")
    if node._is_root_:
        node._commander_._cut_off(error)
        return
    node._set_failure_(error)
    node._flags_ |= FAILED | SEALED | DOOMED
    if not node._flags_ & BODY_OVER and node._task_ is not None:
        node._awaits_ = None
        node._task_.cancel()
    doom_children(node)
