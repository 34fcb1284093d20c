"""Waiting for what workers do to themselves."""

from __future__ import annotations

import asyncio
import time

from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError
from casework.durable.activities.faults import OVER, Mark

LOOK_EVERY_S = 0.05
PATIENCE_S = 180.0


async def until_killed(ground: Ground, fault: str) -> Mark:
    """The mark of a kill, once its worker is gone; the mark is made just before. Raises as `until_mark`."""
    mark = await until_mark(ground, fault)
    while mark.pid in ground.crew.pids:  # noqa: ASYNC110  # no event tells of a process that was killed
        await asyncio.sleep(LOOK_EVERY_S)
    return mark


async def until_mark(ground: Ground, fault: str) -> Mark:
    """The mark of a fault, once it is about to happen.

    Raises:
        BrokenOffError: it did not happen in time.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for mark in ground.faults.marks():
            if mark.id == fault:
                return mark
        await asyncio.sleep(LOOK_EVERY_S)
    raise BrokenOffError(f"Fault {fault} did not happen within {PATIENCE_S:g} s: no worker came to its point.")


async def until_over(ground: Ground, mark: Mark) -> None:
    """Until the attempt that a fault met has ended in its process.

    Raises:
        BrokenOffError: it does not in time.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for each in ground.faults.calls():
            if (each.point, each.pid, each.path, each.run) == (OVER, mark.pid, mark.path, mark.run):
                return
        await asyncio.sleep(LOOK_EVERY_S)
    raise BrokenOffError(f"The attempt of {mark.path} in process {mark.pid} did not end within {PATIENCE_S:g} s.")
