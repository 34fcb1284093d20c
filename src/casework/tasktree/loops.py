"""What a tree takes from its event loop and its clock: the time, and tasks, by the shortest way."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casework.tasktree.limits import Clock

_log = logging.getLogger("casework.tasktree")


def quick_time(clock: Clock) -> Callable[[], float]:
    """`clock.time`; of a loop of asyncio itself that is the system's monotonic clock, without the way round."""
    if getattr(type(clock), "time", None) is asyncio.BaseEventLoop.time:
        return time.monotonic
    return clock.time if isinstance(clock, asyncio.AbstractEventLoop) else _steady(clock)


def _steady(clock: Clock) -> Callable[[], float]:
    """The time of a clock of somebody else's making; where that fails, the last one: no node may hang by it."""
    last = clock.time()

    def reading() -> float:
        nonlocal last
        try:
            now = float(clock.time())
            last = now if math.isfinite(now) else last
        except Exception:  # noqa: BLE001  # logged, and lived with
            _log.exception("the Commander's clock failed; its last time is used")
        return last

    return reading


def quick_tasks(loop: asyncio.AbstractEventLoop) -> Callable[..., asyncio.Task[None]]:
    """`loop.create_task`; of a loop of asyncio itself, without a factory of its own, that only makes a Task."""
    plain = (None, getattr(asyncio, "eager_task_factory", None))  # a body that began at once would not take its turn
    if type(loop).create_task is asyncio.BaseEventLoop.create_task and loop.get_task_factory() in plain:
        return functools.partial(asyncio.Task, loop=loop)
    return loop.create_task
