"""The same small trees three times: ours, agere's, and bare asyncio tasks where there is no tree. No Job or handler
does anything, so that what is measured is the tree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agere.commander import PASS_WORD, CommanderAsync, tasker
from agere.commander import Job as AgereJob
from agere.commander import handler as agere_handler

from casework.tasktree import Commander, Job, call, handler, submit

# ---- ours


@handler
async def echo(value: int) -> int:
    """Ends at once."""
    return value


@handler
async def descend(left: int) -> None:
    """Calls the one below, and ends without waiting for it."""
    if left:
        call(descend(left - 1))


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


class Chain(Calls):
    """Submits the next, below itself, until `count` have run."""

    async def task(self) -> None:
        if self.count > 1:
            submit(Chain(self.count - 1))


class Descends(Calls):
    """Begins a tree of handlers that is `count` deep."""

    async def task(self) -> None:
        call(descend(self.count - 1))


def ours(job: type[Calls], count: int) -> int:
    """Run one of our Jobs."""
    Commander().run_sync(job(count))
    return count


# ---- the peer's


@agere_handler(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
async def agere_echo(self_handler: Any, value: int) -> int:  # noqa: ARG001  # the peer's convention
    """Ends at once."""
    return value


@agere_handler(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
async def agere_descend(self_handler: Any, left: int, at_last: Callable[[], object]) -> None:
    """Calls the one below, and ends without waiting for it."""
    if left:
        self_handler.call_handler(agere_descend(left - 1, at_last))
    else:
        at_last()


class AgereCalls(AgereJob):  # type: ignore[misc]  # the peer has no types
    """Calls `count` handlers. `at_last` is called by the last node of a deep tree."""

    def __init__(self, count: int, at_last: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.count = count
        self.at_last = at_last

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
    """Submits `count` Jobs."""

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        for _ in range(self.count):
            await self.put_job(AgereLeaf())


class AgereChain(AgereCalls):
    """Submits the next, below itself, until `count` have run."""

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        if self.count > 1:
            await self.put_job(AgereChain(self.count - 1, self.at_last))
        else:
            self.at_last()


class AgereDescends(AgereCalls):
    """Begins a tree of handlers that is `count` deep."""

    @tasker(PASS_WORD)  # type: ignore[untyped-decorator]  # the peer has no types
    async def task(self) -> None:
        self.call_handler(agere_descend(self.count - 1, self.at_last))


def agere(job: type[AgereCalls], count: int) -> int:
    """Run one of the peer's Jobs."""
    CommanderAsync().run_auto(job(count))
    return count


# ---- no tree


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
