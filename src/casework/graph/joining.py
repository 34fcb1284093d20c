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
    gate = _Gate(command.max_parallel, work, failed)
    nodes: list[HandlerNode[Result]] = []
    for branch in command.branches:
        await gate.slots.acquire()
        if gate.broken:
            break
        nodes.append(call(gate.run(branch).named(branch.name)))
    return Joined(tuple([await _result(node, failed) for node in nodes]))


class _Gate:
    """What the branches of one visit share."""

    def __init__(self, most: int, work: Work, failed: type[Exception]) -> None:
        self.slots = asyncio.Semaphore(most)
        self.broken = False
        self._work = work
        self._failed = failed

    @handler
    async def run(self, branch: Branch) -> Result:
        """One branch."""
        try:
            return await self._work(branch)
        except BaseException as error:
            self.broken = self.broken or not isinstance(error, self._failed)
            raise
        finally:
            self.slots.release()


async def _result(node: HandlerNode[Result], failed: type[Exception]) -> Result:
    try:
        return await node
    except failed as error:
        return NodeFailed(str(error))
