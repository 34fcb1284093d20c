"""Errors: who receives them, how they travel, what `run` says."""

import asyncio
from typing import Any

import pytest

from casework.tasktree import (
    Commander,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    Stage,
    TaskNode,
    call,
    current_node,
)

from .bodies import Do, do, fails, for_ever, steps

EXCEPTION, TERMINATED, COMPLETED = NodeState.EXCEPTION, NodeState.TERMINATED, NodeState.COMPLETED


async def test_the_error_is_stored_and_raised_as_itself() -> None:
    """TT-18. An awaiter gets the error itself, with a traceback that leads to the failing line."""
    error = ValueError("x")

    async def body() -> None:
        node = call(fails(error))
        for _ in range(3):  # as often as it is asked for, the trace does not grow
            with pytest.raises(ValueError, match="x") as caught:
                await node
            assert caught.value is error
            assert caught.traceback[-1].name == "fails"
            assert len(caught.traceback) < 6
        assert node.exception is error
        assert node.state is EXCEPTION

    assert await Commander().run(Do(body)) is None


async def test_an_unreceived_error_waits_for_the_parents_body() -> None:
    """TT-18. It reaches the parent when the parent's body ends, not before; the parent may still receive it."""

    async def body() -> str:
        node = call(fails(ValueError("x")))
        await steps()
        assert node.state is EXCEPTION
        assert current_node().state is NodeState.ACTIVE
        with pytest.raises(ValueError, match="x"):
            await node
        return "went on"

    assert await Commander().run(Do(body)) == "went on"


async def test_propagation_terminates_the_other_children() -> None:
    """TT-18. The parent ends EXCEPTION, its other children are terminated, and so on up to the root."""

    async def child() -> None:
        call(fails(KeyError("k")).named("bad"))
        call(for_ever().named("good"))

    async def body() -> None:
        call(do(child).named("child"))
        call(for_ever().named("sibling"))

    job, queued = Do(body, "job"), Do(body, "queued")
    commander = Commander()
    with pytest.raises(NodeFailedError) as caught:
        await commander.run(job, Do(for_ever, "blocks"), queued)
    assert caught.value.path == "job.1/child.1/bad.1"
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__cause__ is None
    child_node, sibling = job.children
    assert [node.state for node in child_node.children] == [EXCEPTION, TERMINATED]
    assert [job.state, child_node.state, sibling.state] == [EXCEPTION, EXCEPTION, TERMINATED]
    assert [node.state for node in commander.children] == [EXCEPTION, TERMINATED, TERMINATED]
    assert commander.state is EXCEPTION
    assert child_node.exception is job.exception is commander.exception is caught.value
    assert commander.dropped == 1


async def test_the_error_of_the_body_terminates_the_children() -> None:
    async def body() -> None:
        call(for_ever())
        raise ValueError("body")

    job = Do(body)
    with pytest.raises(NodeFailedError, match="body") as caught:
        await Commander().run(job)
    assert caught.value.path == "Do.1"
    assert job.children[0].state is TERMINATED


async def test_an_awaited_error_that_is_not_handled_names_the_node_where_it_arose() -> None:
    """TT-18. However many nodes awaited it on the way, the cause is the root error, not a chain."""
    error = ValueError("deep")

    async def middle() -> None:
        await fails(error)

    async def top() -> None:
        await do(middle)

    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(top))
    assert caught.value.path == "Do.1/do.1/fails.1"
    assert caught.value.__cause__ is error
    assert error.__cause__ is None


async def test_an_error_of_its_own_is_named_by_its_own_place() -> None:
    """TT-18. A body that answers an error with another one is the place of that other one."""

    async def body() -> None:
        try:
            await fails(ValueError("first"))
        except ValueError as error:
            raise LookupError("second") from error

    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(body))
    assert caught.value.path == "Do.1"
    assert isinstance(caught.value.__cause__, LookupError)


async def test_the_same_error_object_in_two_nodes() -> None:
    """An error object that is raised again elsewhere is named by the place that raised it last."""
    error = ValueError("shared")

    async def body() -> None:
        with pytest.raises(ValueError, match="shared"):
            await fails(error).named("first")
        call(fails(error).named("second"))

    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(body))
    assert caught.value.path == "Do.1/second.1"


async def test_an_awaiter_elsewhere_in_the_tree_receives() -> None:
    """TT-18. Not only the parent can: any node of the tree."""

    async def receives(node: TaskNode) -> str:
        try:
            await node
        except ValueError:
            return "received"
        return "nothing"

    async def body() -> Any:
        bad = call(fails(ValueError("x")))

        async def other() -> str:
            return await receives(bad)

        return do(other)

    assert await Commander().run(Do(body)) == "received"


async def test_an_awaiter_that_is_cancelled_at_that_moment_does_not_swallow() -> None:
    """TT-18. An error that was about to be handed over to a node that ends just then goes to the parent after all."""

    async def body() -> None:
        bad = call(fails(ValueError("x")))

        async def other() -> None:
            await bad

        def cancel_after_waking() -> None:
            task = waiting._task_
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)

        waiting = call(do(other))
        bad.on(Stage.AT_HANDLER_END, cancel_after_waking)

    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(body))
    assert caught.value.path == "Do.1/fails.1"


async def test_an_awaiter_outside_the_tree_receives_a_copy_only() -> None:
    """TT-18. The tree does not count on someone outside to handle an error."""

    async def body() -> None:
        call(bad)

    bad = fails(ValueError("x"))
    commander = Commander()
    running = asyncio.ensure_future(commander.run(Do(body)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="x"):
        await bad
    with pytest.raises(NodeFailedError):
        await running


async def test_a_cancellation_that_nobody_asked_for_is_not_swallowed() -> None:
    """TT-18. A body that ends cancelled, though nobody terminated it, is reported up."""

    async def awaits_something_cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def careful() -> str:
        with pytest.raises(NodeTerminatedError):
            await do(awaits_something_cancelled)
        return "went on"

    async def careless() -> None:
        call(do(awaits_something_cancelled))

    assert await Commander().run(Do(careful)) == "went on"
    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(careless))
    assert caught.value.path == "Do.1/do.1"
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
