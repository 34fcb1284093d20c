"""Finished subtrees: kept or released, and what a Commander that stays open then holds."""

import asyncio
import gc
import tracemalloc
import weakref
from typing import Any, Literal

import pytest
from tests.unit.tasktree.bodies import Do, do, steps

from casework.tasktree import Commander, NodeFailedError, NodeState, Stage, TaskNode, call, handler, submit


@handler
async def work(levels: int, *, fails: bool = False) -> int:
    """A chain of handlers, whose lowest may fail."""
    await asyncio.sleep(0)
    if levels:
        return 1 + await call(work(levels - 1, fails=fails))
    if fails:
        raise ValueError("at the end")
    return 0


def paths(top: TaskNode) -> list[str]:
    return [path for child in top.children for path in (child.path, *paths(child))]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("all", ["do.1", "do.1/work.1", "do.1/work.1/work.1", "work.1", "work.1/work.1", "work.2"]),
        ("failed", ["work.1", "work.1/work.1"]),
        ("none", []),
    ],
)
async def test_what_stays(keep: Literal["all", "failed", "none"], kept: list[str]) -> None:
    """TT-25. All; those that failed with what is above them; or none. Paths go on as if all were there."""
    async with Commander(keep=keep, isolate=True) as commander:
        await call(do(lambda: _await(work(1))))
        with pytest.raises(ValueError, match="at the end"):
            await call(work(1, fails=True))
        await call(work(0))
        assert paths(commander) == kept
        assert call(work(0)).path == "work.3"


async def _await(node: Any) -> Any:
    return await node


async def test_a_released_node_keeps_what_it_is() -> None:
    """TT-25. Whoever holds it has its result, path and parent still."""
    async with Commander(keep="none") as commander:
        node = call(work(2))
        assert await node == 2
        assert (node.path, node.parent, node.state) == ("work.1", commander, NodeState.COMPLETED)
        assert await node == 2


async def test_released_nodes_are_freed() -> None:
    """TT-25. Nothing of the tree holds them: not the list of children, not the queue, not a context."""
    held: list[weakref.ref[Any]] = []

    class Payload:
        pass

    async def body() -> Payload:
        made = Payload()
        held.append(weakref.ref(made))
        return made

    async with Commander(keep="none") as commander:
        for _ in range(50):
            await submit(Do(body))
            await call(do(body))
        gc.collect()
        assert sum(each() is not None for each in held) <= 10 + 1  # those not swept yet, and the first Job's result
        assert len(commander.children) == 0


@pytest.mark.parametrize("fails", [False, True])
async def test_a_commander_that_stays_open_has_flat_memory(fails: bool) -> None:
    """TT-25. Thousands of Jobs and handlers, also failing ones that somebody received, leave nothing behind."""

    async def round_of(count: int) -> None:
        for _ in range(count):
            try:
                await submit(Do(lambda: _await(work(3, fails=fails))))
            except ValueError:
                assert fails

    async with Commander(keep="none") as commander:
        tracemalloc.start()
        try:
            await round_of(300)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            await round_of(1_500)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert grown < 100_000, "7,500 nodes would be megabytes"
        assert commander.export_counters() == {"": {"Do": 1_800}}


async def test_many_at_once_are_released_in_any_order() -> None:
    """TT-25. Children that end out of order: those that live stay, in the order in which they came."""
    async with Commander(keep="none") as commander:
        nodes = [call(do(lambda turns=number % 7: steps(turns)).named(f"n{number}")) for number in range(200)]
        for _ in range(10):
            assert [node for node in nodes if not node.state.final] == list(commander.children)
            await asyncio.sleep(0)


async def test_errors_that_nobody_received_reach_the_parent_of_a_released_node() -> None:
    """TT-18, TT-25. Nothing is swallowed by letting go."""

    async def body() -> None:
        call(work(1, fails=True))

    commander = Commander(keep="none")
    with pytest.raises(NodeFailedError, match=r"Do\.1/work\.1/work\.1"):
        await commander.run(Do(body))
    assert commander.children == ()


async def test_end_callbacks_of_released_nodes_run() -> None:
    """TT-17, TT-25. What is kept for the end of the Commander is kept."""
    told: list[str] = []
    async with Commander(keep="none") as commander:
        node = work(0).on(Stage.AT_COMMANDER_END, lambda at: told.append(at.path), with_node=True)
        await call(node)
        assert commander.children == ()
    assert told == ["work.1"]
