"""Many runs that wait for a person, beside ten: what waiting costs, and whether all survive a restart of everything.

Ours is a local stack with 10,000 runs of a workflow with one HUMAN_APPROVAL node, all awaiting review; the peer is a
second such stack with ten. Both stand on one machine, idle, and are looked at in turn. API, worker, Temporal and
PostgreSQL are each a process, with default settings. A ratio of 1 means that the crowd costs nothing.

- *worker memory, having started them* is that of the worker that started all runs: it keeps the last 500 in memory
  (`CASEWORK_WORKER_CACHE_SIZE`). *After a restart* it keeps none, however many wait.
- *Temporal memory* is that of the development server, which keeps open runs in a cache of its own.
- *CPU* is what a process uses in a minute in which nobody does anything, two sweeps included. Every ten minutes a sweep
  reads the engine's list of all open runs, which a median of five windows leaves out: with 10,000 it takes the engine
  some five seconds of CPU and the worker one and a half (`docs/operations/sweep.md`).
- *ten oldest reviews* is `GET /v1/reviews?limit=10` over HTTP; *first page* is what `casework review list` asks for:
  50 reviews, of which ten runs have only ten to show.
- *one sweep* is how long the engine says that it took.
- *from a cold start to an approved run*: every process was stopped; all are started again on the same data, and the
  run that has waited longest is approved and ends.
- *runs started in a second* are over HTTP, by one worker, each until it awaits its review; ten are too few to tell.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.harness import Report, Samples, Scale, main
from benchmarks.support.crowd import Crowd, Use

FEW = 10
MANY = 10_000
PAGE = 50
"""What the API shows unless asked for more or less."""
LEAST_GROWING_S = 5.0
"""Seconds in which a crowd grows, however long its stack took to start."""
PAGES = 20
"""Requests in each round."""
AT_ONCE_MS = 200.0
"""What a person takes for at once."""


@dataclass(frozen=True)
class Plan:
    """How many runs, how long each side is watched in a round, and until when runs are started, in seconds."""

    runs: int
    rounds: int
    window_s: float
    growing_s: float


FULL = Plan(MANY, rounds=5, window_s=30.0, growing_s=float("inf"))
"""A window holds exactly one sweep."""
QUICK = Plan(MANY, rounds=5, window_s=0.5, growing_s=14.0)


@dataclass
class Standing:
    """What was measured of one crowd, a figure for each round."""

    waiting: int = 0
    uses: list[Use] = field(default_factory=list)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    ten_ms: list[float] = field(default_factory=list)
    page_ms: list[float] = field(default_factory=list)
    sweep_ms: list[float] = field(default_factory=list)
    connections: list[float] = field(default_factory=list)
    starts: float = 0.0
    restart_s: float = 0.0
    worker_after_mb: float = 0.0
    end: str = ""
    left: int = 0


async def compare(plan: Plan) -> tuple[Standing, Standing]:
    """The crowd and the few, each on its own stack."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="casework-waiting-") as folder:
        async with AsyncExitStack() as stacks:
            many, few = Crowd(Path(folder) / "many"), Crowd(Path(folder) / "few")
            crowd = await _gather(stacks, many, plan.runs, began + plan.growing_s)
            ten = await _gather(stacks, few, FEW, float("inf"))
            for _ in range(plan.rounds):
                await _look(many, plan.window_s, crowd)
                await _look(few, plan.window_s, ten)
            await _restart(many, crowd)
            await _restart(few, ten)
    return crowd, ten


async def _gather(stacks: AsyncExitStack, made: Crowd, runs: int, until: float) -> Standing:
    stacks.push_async_callback(made.stop)
    await made.start()
    began = time.monotonic()
    started = await made.grow(runs, max(until, began + LEAST_GROWING_S))
    return Standing(waiting=made.waiting(), starts=started / (time.monotonic() - began))


async def _look(made: Crowd, window_s: float, found: Standing) -> None:
    """One round: first while nobody does anything, then what is asked for."""
    before, began = made.use(), time.monotonic()
    await asyncio.sleep(window_s)
    after, minutes = made.use(), (time.monotonic() - began) / 60
    found.uses.append(after)
    for name in ("worker_s", "api_s", "temporal_s", "postgres_s"):
        found.cpu.setdefault(name, []).append((getattr(after, name) - getattr(before, name)) / minutes)
    found.ten_ms.append(median([await made.list_ms(10) for _ in range(PAGES)]))
    found.page_ms.append(median([await made.list_ms(PAGE) for _ in range(PAGES)]))
    found.sweep_ms.append(await made.sweep_ms())
    found.connections.append(made.connections())


async def _restart(made: Crowd, found: Standing) -> None:
    """Stop every process, start all again, approve one run."""
    await made.stop()
    began = time.monotonic()
    await made.start()
    found.end = await made.approve_one()
    found.restart_s = time.monotonic() - began
    found.worker_after_mb = made.use().worker_mb
    found.left = made.waiting()


def report(many: Standing, few: Standing) -> Report:
    """The figures, and the promises that do not hold."""
    return Report(_samples(many, few), broken(many))


def _samples(many: Standing, few: Standing) -> list[Samples]:
    peer = f"{few.waiting} waiting"

    def of(what: str, unit: str, ours: Sequence[float], theirs: Sequence[float], *, more: bool = False) -> Samples:
        return Samples(f"{what}, {many.waiting:,} waiting", unit, ours, theirs, peer, more)

    def memory(what: str, part: str) -> Samples:
        return of(what, "MB", [getattr(use, part) for use in many.uses], [getattr(use, part) for use in few.uses])

    def cpu(what: str, part: str) -> Samples:
        return of(f"{what} CPU", "s a minute", many.cpu[part], few.cpu[part])

    return [
        memory("worker memory, having started them", "worker_mb"),
        of("worker memory, after a restart", "MB", [many.worker_after_mb], [few.worker_after_mb]),
        memory("API memory", "api_mb"),
        memory("Temporal memory", "temporal_mb"),
        cpu("worker", "worker_s"),
        cpu("API", "api_s"),
        cpu("Temporal", "temporal_s"),
        cpu("PostgreSQL", "postgres_s"),
        of("ten oldest reviews", "ms", many.ten_ms, few.ten_ms),
        of("first page of reviews", "ms", many.page_ms, few.page_ms),
        of("one sweep", "ms", many.sweep_ms, few.sweep_ms),
        of("database connections", "", many.connections, few.connections),
        of("from a cold start to an approved run", "s", [many.restart_s], [few.restart_s]),
        of("runs started in a second", "", [many.starts], [few.starts], more=True),
    ]


def broken(many: Standing) -> list[str]:
    """Promises that the crowd did not keep."""
    found = []
    if many.end != "COMPLETED approved":
        found.append(f"the run that was approved after the restart ended {many.end}")
    if many.left != many.waiting - 1:
        found.append(f"{many.waiting - 1} runs should wait after the restart, and {many.left} do")
    if median(many.page_ms) > AT_ONCE_MS:
        found.append(f"the first page of reviews takes {median(many.page_ms):.0f} ms")
    return found


def measure(scale: Scale) -> Report:
    """All of it."""
    return report(*asyncio.run(compare(QUICK if scale.quick else FULL)))


if __name__ == "__main__":
    main("waiting", measure)
