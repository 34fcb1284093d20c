"""No recursion in the mechanics (TT-25): long chains and deep trees end on a flat stack."""

import asyncio
import sys
from typing import Any

import pytest

from casework.tasktree import Commander, Job, NodeFailedError, NodeState, TaskNode, call, current_node, handler, submit

MILLION = 1_000_000
LONG = 100_000
DEEP = 5_000  # where every level holds a waiting task, and more is a matter of patience


@pytest.fixture(autouse=True)
def _flat_stack() -> Any:
    """A stack that would not hold even a short recursion."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


class Chain(Job):
    """Submits the next one, below itself or beside."""

    def __init__(self, left: int, *, flat: bool = False, fails: bool = False) -> None:
        self.left, self.flat, self.fails = left, flat, fails

    async def task(self) -> None:
        if self.left:
            following = Chain(self.left - 1, flat=self.flat, fails=self.fails)
            submit(following, parent=self.commander if self.flat else None)
        elif self.fails:
            raise ValueError("at the end of the chain")


def lowest(node: TaskNode) -> TaskNode:
    while node.children:
        node = node.children[0]
    return node


def test_a_long_chain_of_jobs_each_below_the_one_before() -> None:
    """TT-25. The tree is as deep as the chain is long; it ends, has paths, and is freed."""
    commander = Commander()
    commander.run_sync(Chain(MILLION))
    end = lowest(commander)
    assert end.path.count("/") == MILLION
    assert len(end.ancestor_chain) == MILLION + 2
    assert end.state is NodeState.COMPLETED


def test_a_long_chain_of_jobs_side_by_side() -> None:
    """TT-6, TT-25. What grew by a frame or a node for each would be past the stack at a hundredth of this."""
    commander = Commander(keep="none")
    commander.run_sync(Chain(LONG, flat=True))
    assert commander.export_counters() == {"": {"Chain": LONG + 1}}


def test_an_error_at_the_end_of_a_long_chain() -> None:
    """TT-18, TT-25. One error comes up, however long the way; its cause is the root error."""
    with pytest.raises(NodeFailedError) as caught:
        Commander().run_sync(Chain(LONG, fails=True))
    assert caught.value.path.count("/") == LONG
    assert isinstance(caught.value.__cause__, ValueError)


@handler
async def descend(left: int, *, waits: bool, fails: bool) -> int:
    if left:
        node = call(descend(left - 1, waits=waits, fails=fails))
        return 1 + await node if waits else 0
    if fails:
        raise ValueError("at the bottom")
    return 0


class Top(Job):
    def __init__(self, depth: int, *, waits: bool = False, fails: bool = False) -> None:
        self.depth, self.waits, self.fails = depth, waits, fails

    async def task(self) -> Any:
        return descend(self.depth, waits=self.waits, fails=self.fails)


def test_a_deep_tree_of_handlers() -> None:
    """TT-25."""
    assert Commander().run_sync(Top(LONG)) == 0


def test_a_deep_tree_in_which_every_level_waits() -> None:
    """TT-25."""
    assert Commander().run_sync(Top(LONG, waits=True)) == LONG


@pytest.mark.parametrize("waits", [True, False])
def test_an_error_at_the_bottom(waits: bool) -> None:
    """TT-18, TT-25."""
    with pytest.raises(NodeFailedError) as caught:
        Commander().run_sync(Top(DEEP, waits=waits, fails=True))
    assert caught.value.path.count("/") == DEEP
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_deep_tree_is_terminated() -> None:
    """TT-19, TT-25."""

    @handler
    async def hold(left: int) -> None:
        if left:
            call(hold(left - 1))
        else:
            reached.set()
        await asyncio.Event().wait()

    class Holds(Job):
        async def task(self) -> None:
            node = call(hold(DEEP))
            await reached.wait()
            await node.terminate()
            assert node.state is NodeState.TERMINATED
            assert lowest(node).state is NodeState.TERMINATED
            assert current_node().state is NodeState.ACTIVE

    reached = asyncio.Event()
    Commander().run_sync(Holds())
