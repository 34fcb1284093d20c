"""One measurement of a tree in this process alone: `python -m benchmarks.support.tree_probe PROBE SIDE COUNT`.

Probes: `open` and `ended` print bytes for each of COUNT handlers, while all wait and when all have ended; `queued`
prints bytes for each of COUNT Jobs in the queue; `chain` and `depth` print COUNT where a chain of so many Jobs, or a
tree so many handlers deep, came to its end.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

from agere.commander import PASS_WORD, CommanderAsync, tasker
from agere.commander import Job as AgereJob
from agere.commander import handler as agere_handler

from benchmarks.support import trees
from casework.tasktree import Commander, call, handler, submit

PATIENCE = 3.0
"""Seconds that a peer has to end its tree when the last node has begun; it needs some milliseconds."""


class Meter:
    """What `count` things take, as tracemalloc counts it: before them, while they are there, and after."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.gate = asyncio.Event()
        gc.collect()
        tracemalloc.start()
        self.before = tracemalloc.get_traced_memory()[0]

    def read(self) -> float:
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - self.before) / self.count

    async def settle(self) -> None:
        """Let all begin, or end."""
        for _ in range(10):
            await asyncio.sleep(0)


async def _wait(gate: asyncio.Event) -> None:
    await gate.wait()


_our_wait = handler(_wait)


@agere_handler(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
async def _agere_wait(self_handler: Any, gate: asyncio.Event) -> None:  # noqa: ARG001  # the peer's convention
    await gate.wait()


async def _handlers(meter: Meter, start: Callable[[], object]) -> tuple[float, float]:
    """Bytes of a handler while it waits, and when it has ended."""
    for _ in range(meter.count):
        start()
    await meter.settle()
    waiting = meter.read()
    meter.gate.set()
    await meter.settle()
    return waiting, meter.read()


def ours(count: int, keep: Any) -> tuple[float, float]:
    """Of our handlers."""

    async def run() -> tuple[float, float]:
        async with Commander(keep=keep) as commander:
            meter = Meter(count)
            return await _handlers(meter, lambda: call(_our_wait(meter.gate), parent=commander))

    return asyncio.run(run())


def agere(count: int) -> tuple[float, float]:
    """Of the peer's handlers, called by one Job as the peer has it."""
    found: list[tuple[float, float]] = []

    class Top(AgereJob):  # type: ignore[misc]  # the peer has no types
        @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
        async def task(self) -> None:
            meter = Meter(count)
            found.append(await _handlers(meter, lambda: self.call_handler(_agere_wait(meter.gate))))

    CommanderAsync().run_auto(Top())
    return found[0]


def bare(count: int) -> tuple[float, float]:
    """Of asyncio tasks; somebody must hold each, and here forgets it when it is done."""

    async def run() -> tuple[float, float]:
        meter = Meter(count)
        tasks: set[asyncio.Task[None]] = set()

        def start() -> None:
            task = asyncio.create_task(_wait(meter.gate))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return await _handlers(meter, start)

    return asyncio.run(run())


def queued(side: str, count: int) -> float:
    """Of a Job in the queue."""
    found: list[float] = []

    class Ours(trees.Calls):
        async def task(self) -> None:
            meter = Meter(count)
            for _ in range(count):
                submit(trees.Leaf())
            found.append(meter.read())

    class Agere(trees.AgereCalls):
        @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
        async def task(self) -> None:
            meter = Meter(count)
            for _ in range(count):
                await self.put_job(trees.AgereLeaf())
            found.append(meter.read())

    if side == "ours":
        trees.ours(Ours, count)
    else:
        trees.agere(Agere, count)
    return found[0]


def reach(probe: str, side: str, count: int) -> int:
    """`count`, if a tree so deep ends without an error. A peer that hangs is left after a while."""
    if side == "ours":
        return trees.ours(trees.Chain if probe == "chain" else trees.Descends, count)
    quiet = logging.getLogger("quiet")
    quiet.disabled = True
    job = (trees.AgereChain if probe == "chain" else trees.AgereDescends)(count, _leave_later)
    commander = CommanderAsync(quiet)
    commander.run_auto(job)
    if job.state != "COMPLETED" or not commander.is_empty():
        raise SystemExit(1)
    return count


def _leave_later() -> None:
    """The last node has begun, so the whole tree ends in a moment or never."""
    asyncio.get_running_loop().call_later(PATIENCE, os._exit, 1)


def measure(probe: str, side: str, count: int) -> float:
    """One figure."""
    if probe in ("chain", "depth"):
        return reach(probe, side, count)
    if probe == "queued":
        return queued(side, count)
    if probe not in ("open", "ended"):
        raise SystemExit(f"There is no probe {probe!r}.")
    sides: dict[str, Callable[[], tuple[float, float]]] = {
        "ours": lambda: ours(count, "all"),
        "ours-keep-none": lambda: ours(count, "none"),
        "agere": lambda: agere(count),
        "task": lambda: bare(count),
    }
    return sides[side]()[probe == "ended"]


if __name__ == "__main__":
    print(measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))
