"""Waits of callbacks, of those who terminate, of those on the way out, and of those who need a slot: none hangs."""

import asyncio
from typing import Any

import pytest

from casework.tasktree import (
    Commander,
    EndlessWaitError,
    NodeFailedError,
    NodeState,
    Stage,
    TaskNode,
    call,
    current_node,
    handler,
    send,
    submit,
)

from .bodies import Do, do, for_ever, nothing, steps
from .ending import outcome, quiet


async def _await(node: TaskNode) -> Any:
    return await node


async def test_an_end_callback_that_awaits_whoever_awaits_its_node() -> None:
    """TT-16, TT-20. The node has not ended before its callbacks have: that is a circle, and the callback is told."""
    nodes: dict[str, TaskNode] = {}

    async def other() -> None:
        await asyncio.sleep(0)
        await nodes["node"]

    async def body() -> None:
        nodes["other"] = call(do(other))
        nodes["node"] = call(nothing().on(Stage.AT_HANDLER_END, lambda: _await(nodes["other"])))

    assert await outcome(quiet(), Do(body)) is None
    assert "EndlessWaitError" in nodes["node"].notes[0]
    assert nodes["other"].state is NodeState.COMPLETED


@pytest.mark.parametrize("stage", [Stage.AT_HANDLER_START, Stage.AT_HANDLER_END])
async def test_a_callback_that_awaits_a_job_behind_the_body_that_awaits_its_node(stage: Stage) -> None:
    """TT-20."""

    async def body() -> tuple[str, ...]:
        queued = submit(Do(steps, "queued"))
        node = call(nothing().on(stage, lambda: _await(queued)))
        await node
        return node.notes

    (note,) = await outcome(quiet(), Do(body))
    assert "EndlessWaitError" in note


async def test_whoever_terminates_waits_too() -> None:
    """TT-19, TT-20. A node that on its way out awaits the one that terminates it is told so, and ends."""
    nodes: dict[str, TaskNode] = {}

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await nodes["other"]

    async def other() -> None:
        await steps()
        await nodes["stubborn"].terminate()

    async def body() -> None:
        nodes["stubborn"], nodes["other"] = call(do(stubborn)), call(do(other))

    assert await outcome(quiet(), Do(body)) is None
    assert isinstance(nodes["stubborn"].exception, EndlessWaitError)


async def test_a_job_that_terminates_what_awaits_a_queued_job_on_its_way_out() -> None:
    """TT-19, TT-20."""

    async def body() -> Any:
        queued = submit(Do(steps, "queued"))

        async def stubborn() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await queued

        node = call(do(stubborn))
        await steps()
        await node.terminate()
        return node.exception

    assert isinstance(await outcome(quiet(), Do(body)), EndlessWaitError)


async def test_nodes_that_terminate_each_other_and_those_that_await_them() -> None:
    """TT-19. A wait out of which a node was torn counts no more: nobody is refused for it."""
    nodes: dict[str, TaskNode] = {}

    async def first() -> None:
        await steps()
        await nodes["second"].terminate()

    async def second() -> None:
        await nodes["first"]

    async def body() -> None:
        nodes["first"], nodes["second"] = call(do(first)), call(do(second))
        await nodes["first"]

    assert await outcome(quiet(), Do(body)) is None
    assert [nodes[name].state for name in ("first", "second")] == [NodeState.COMPLETED, NodeState.TERMINATED]


async def test_a_job_that_awaits_a_handler_that_is_over_but_for_a_queued_job() -> None:
    """TT-4, TT-20. The handler's body has returned; it has not ended while its Job waits behind the body."""

    async def leaves_a_job() -> None:
        submit(Do(steps, "queued"))

    async def body() -> None:
        node = call(do(leaves_a_job))
        await steps()
        await node

    error = await outcome(Commander(), Do(body))
    assert isinstance(error, NodeFailedError)
    assert isinstance(error.__cause__, EndlessWaitError)


async def test_a_child_sent_to_its_own_commander() -> None:
    """TT-11, TT-20. It is done there like any Job; a body that awaits it awaits a Job behind it."""
    commander = Commander()

    async def body() -> Any:
        return send(Do(_one, "sent"), to=commander)

    async def awaits() -> None:
        await send(Do(_one, "sent"), to=commander)

    assert await outcome(commander, Do(body)) == 1
    error = await outcome(commander, Do(awaits))
    assert isinstance(error, NodeFailedError)
    assert isinstance(error.__cause__, EndlessWaitError)


# ---- slots


async def _one() -> int:
    return 1


async def test_a_handler_that_is_terminated_before_its_first_step_gives_its_slot_back() -> None:
    """TT-12, TT-19."""

    async def body() -> Any:
        for _ in range(3):
            await call(nothing()).terminate()
        return do(_one)

    assert await outcome(Commander(max_handlers=1), Do(body)) == 1


async def test_a_wait_that_outlives_its_handler_takes_no_slot() -> None:
    """TT-12, TT-19. A task that the body left behind goes on waiting for a node, and gets its answer without one."""
    left: list[asyncio.Future[Any]] = []

    @handler
    async def leaves(node: TaskNode) -> None:
        left.append(asyncio.ensure_future(_await(node)))
        await asyncio.sleep(0)

    async def body() -> Any:
        for _ in range(3):
            gate = asyncio.Event()
            held = call(do(gate.wait))
            await leaves(held)
            gate.set()
            await left.pop()
        return do(_one)

    assert await outcome(Commander(max_handlers=2), Do(body)) == 1


@pytest.mark.parametrize("way", ["timeout", "wait_for"])
async def test_a_wait_that_is_cut_off_while_the_awaited_one_holds_the_slot(way: str) -> None:
    """TT-12. The body goes on without a slot, and terminates what it waited for: it never hangs on its own child."""

    async def impatient() -> None:
        node = call(for_ever())
        await steps()
        wait = asyncio.wait_for(node, 0.005) if way == "wait_for" else _within(0.005, node)
        with pytest.raises(TimeoutError):
            await wait
        await node.terminate()

    async def body() -> Any:
        await asyncio.gather(*(call(do(impatient)) for _ in range(3)))
        return do(_one)

    assert await outcome(Commander(max_handlers=1), Do(body)) == 1


async def _within(seconds: float, node: TaskNode) -> Any:
    async with asyncio.timeout(seconds):
        return await node


@pytest.mark.parametrize("most", [1, 2])
async def test_all_slots_are_held_by_parents_that_wait_for_children(most: int) -> None:
    """TT-12. In every way of waiting: await, gather, a group, terminate, a Job; and all at once."""

    @handler
    async def parent(depth: int) -> int:
        if not depth:
            return 1
        nodes = [call(parent(depth - 1)) for _ in range(2)]
        given = sum(await asyncio.gather(*nodes))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_await(call(parent(0)))) for _ in range(2)]
        ended = call(for_ever())
        await steps(2)
        await ended.terminate()
        total: int = given + sum(task.result() for task in tasks) + await submit(Do(_one))
        return total

    async def body() -> Any:
        return parent(3)

    assert await outcome(Commander(max_handlers=most), Do(body), Do(body)) == 29


# ---- a tree in a tree


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("way", ["run", "block"])
async def test_a_tree_in_a_job_that_awaits_a_job_behind_that_one(way: str, late: bool) -> None:
    """TT-20. The body of the Job waits for the inner tree, so a wait there for what is queued here never ends."""

    async def inner(queued: TaskNode) -> None:
        await steps(10 if late else 0)
        await queued

    async def body() -> None:
        queued = submit(Do(steps, "queued"))
        if way == "run":
            await Commander().run(Do(lambda: inner(queued), "inner"))
        else:
            async with Commander():
                submit(Do(lambda: inner(queued), "inner"))
                await steps(4)

    error = await outcome(Commander(), Do(body))
    assert isinstance(error, NodeFailedError)
    assert isinstance(error.__cause__, (NodeFailedError, EndlessWaitError))
    assert "cannot await" in str(error)


async def test_a_tree_in_a_handler_that_needs_the_handlers_slot() -> None:
    """TT-12. The handler gives its slot back while it waits for the inner tree, and takes one again."""

    async def body() -> Any:
        parent = current_node()

        async def inner() -> Any:
            return await call(do(_one), parent=parent)

        async def runs() -> Any:
            return await Commander(max_handlers=1).run(Do(inner))

        return do(runs)

    assert await outcome(Commander(max_handlers=1), Do(body)) == 1


async def test_a_tree_in_another_thread_leaves_the_tree_here_alone() -> None:
    """TT-11, TT-12. A handler runs a script in a thread: that has a tree of its own, and no hand in ours."""

    async def body() -> Any:
        return await asyncio.to_thread(Commander(max_handlers=1).run_sync, Do(lambda: _await(do(_one))))

    assert await outcome(Commander(max_handlers=1), Do(lambda: _go_on(do(body)))) == 1


async def _go_on(node: TaskNode) -> TaskNode:
    return node
