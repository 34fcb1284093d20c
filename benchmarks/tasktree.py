"""The task tree beside `asyncio.TaskGroup` and `agere`: handlers and Jobs per second of processor time, no listener.

A handler here does nothing, so a figure is the price of one node of the tree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agere.commander import PASS_WORD, CommanderAsync, tasker
from agere.commander import Job as AgereJob
from agere.commander import handler as agere_handler

from benchmarks.harness import Pair, Report, Scale, main, rates
from casework.tasktree import Commander, Job, call, handler, submit


@handler
async def echo(value: int) -> int:
    return value


class Calls(Job):
    """Calls `count` handlers."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def task(self) -> None:
        for number in range(self.count):
            call(echo(number))


class Leaf(Job):
    """Does nothing."""

    async def task(self) -> int:
        return 1


class Submits(Calls):
    """Submits `count` Jobs."""

    async def task(self) -> None:
        for _ in range(self.count):
            submit(Leaf())


@agere_handler(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
async def agere_echo(self_handler: Any, value: int) -> int:  # noqa: ARG001  # the peer's convention
    return value


class AgereCalls(AgereJob):  # type: ignore[misc]  # the peer has no types
    """The same for the peer."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        for number in range(self.count):
            self.call_handler(agere_echo(number))


class AgereLeaf(AgereJob):  # type: ignore[misc]  # the peer has no types
    """Does nothing."""

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        return None


class AgereSubmits(AgereCalls):
    """The same for the peer."""

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        for _ in range(self.count):
            await self.put_job(AgereLeaf())


def task_group(count: int) -> int:
    """`count` tasks in a TaskGroup."""

    async def body(value: int) -> int:
        return value

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(body(number))

    asyncio.run(run())
    return count


def ours(job: type[Calls], count: int) -> int:
    """Run one of our Jobs."""
    Commander().run_sync(job(count))
    return count


def agere(job: type[AgereCalls], count: int) -> int:
    """Run one of the peer's Jobs."""
    CommanderAsync().run_auto(job(count))
    return count


def pairs(quick: bool) -> Sequence[Pair]:
    """What is compared; the amount of work per call."""
    count = 5_000 if quick else 20_000
    return [
        Pair("handlers", "per CPU second", lambda: ours(Calls, count), lambda: task_group(count), "asyncio.TaskGroup"),
        Pair("handlers", "per CPU second", lambda: ours(Calls, count), lambda: agere(AgereCalls, count), "agere"),
        Pair("Jobs", "per CPU second", lambda: ours(Submits, count), lambda: agere(AgereSubmits, count), "agere"),
    ]


def measure(scale: Scale) -> Report:
    """All of it."""
    return Report(rates(pairs(scale.quick), scale.rounds))


if __name__ == "__main__":
    main("tasktree", measure)
