"""Branches as handlers of the task tree: started in order, so many at one time, all awaited. Any driver can use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from casework.graph.commands import Branch, Joined, NodeFailed, Result, RunBranches
from casework.tasktree import HandlerNode, call, handler

Work = Callable[[Branch], Awaitable[Result]]
"""Carries out the command of one branch, in the branch's own node."""


async def join(command: RunBranches, work: Work, failed: type[Exception]) -> Joined:
    """Carry out all branches below the running node; returns when each has ended.

    `failed` is the error by which a branch says that it did not succeed; the others go on. Any other error ends the
    visit: no more branches are started, and those under way are terminated with it.
    """
    gate = _Gate(len(command.branches), command.max_parallel, work, failed)
    nodes: list[HandlerNode[Result]] = []
    for branch in command.branches:
        await gate.slots.acquire()
        if gate.broken is not None:
            break
        nodes.append(call(gate.run(branch, len(nodes)).named(branch.name)))
    await gate.settled.wait()
    if gate.broken is not None:
        await nodes[gate.broken]
    return Joined(tuple([await _result(node, failed) for node in nodes]))


class _Gate:
    """What the branches of one visit share. It is settled when all have ended, or one by an error of another kind."""

    def __init__(self, branches: int, most: int, work: Work, failed: type[Exception]) -> None:
        self.slots = asyncio.Semaphore(most)
        self.settled = asyncio.Event()
        self.broken: int | None = None
        self._left = branches
        self._work = work
        self._failed = failed
        self._settle()

    @handler
    async def run(self, branch: Branch, place: int) -> Result:
        """One branch."""
        try:
            return await self._work(branch)
        except BaseException as error:
            if self.broken is None and not isinstance(error, self._failed):
                self.broken = place
            raise
        finally:
            self._left -= 1
            self._settle()
            self.slots.release()

    def _settle(self) -> None:
        if self.broken is not None or not self._left:
            self.settled.set()


async def _result(node: HandlerNode[Result], failed: type[Exception]) -> Result:
    try:
        return await node
    except failed as error:
        return NodeFailed(str(error))
