"""Termination: from inside, from outside, and where the tree is only dropped from memory."""

import asyncio
import contextlib
from typing import Any

import pytest

from casework.tasktree import (
    Commander,
    NodeState,
    NodeTerminatedError,
    Stage,
    TaskNode,
    TreeError,
    call,
    current_node,
    exit_run,
    submit,
)

from .bodies import Do, do, for_ever, nothing, steps

EXCEPTION, TERMINATED, COMPLETED = NodeState.EXCEPTION, NodeState.TERMINATED, NodeState.COMPLETED


async def test_terminate_cancels_in_order_and_waits() -> None:
    """TT-19. The node and all below it, parents cancelled first; it waits until all have ended."""
    log: list[str] = []

    async def child() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await steps(3)
            log.append(current_node().name)

    async def parent() -> None:
        call(do(child).named("a"))
        call(do(child).named("b"))
        try:
            await asyncio.Event().wait()
        finally:
            log.append("parent")

    async def body() -> None:
        node = call(do(parent))
        await steps()
        await node.terminate()
        log.append("terminated")
        assert [one.state for one in (node, *node.children)] == [TERMINATED] * 3
        with pytest.raises(NodeTerminatedError):
            await node
        await node.terminate()  # once more is nothing

    await Commander().run(Do(body))
    assert log == ["parent", "a", "b", "terminated"]


async def test_a_terminated_node_takes_and_gives_no_more_work() -> None:
    """TT-19. Later submissions by it raise, wherever they would go."""
    refused: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for attempt in (
                lambda: call(nothing()),
                lambda: submit(Do(stubborn)),
                lambda: call(nothing(), parent=current_node().commander),
                lambda: submit(Do(stubborn), parent=current_node().commander),
            ):
                with pytest.raises(NodeTerminatedError) as caught:
                    attempt()
                refused.append(str(caught.value))

    async def body() -> None:
        node = call(do(stubborn))
        await steps()
        await node.terminate()

    await Commander().run(Do(body))
    assert len(refused) == 4


async def test_terminate_before_the_first_step() -> None:
    """TT-19. A handler that has not begun, a queued Job, and a node without a place never begin."""
    begun: list[int] = []

    async def begins() -> None:
        begun.append(1)

    async def body() -> None:
        handler_node, job = call(do(begins)), submit(Do(begins))
        await handler_node.terminate()
        await job.terminate()
        free = do(begins)
        await free.terminate()
        assert free.state is TERMINATED
        with pytest.raises(TreeError):
            call(free)

    last = Do(nothing)
    commander = Commander()
    await commander.run(Do(body), last)
    assert begun == []
    assert last.state is COMPLETED
    assert commander.dropped == 1


async def test_what_never_began_ends_in_order() -> None:
    """TT-19. In the order in which it was attached; the same every time."""
    ended: list[str] = []

    async def body() -> None:
        for name in "abc":
            call(nothing().named(name).on(Stage.AT_TERMINATE, ended.append, name))
        submit(Do(nothing, "d").on(Stage.AT_TERMINATE, ended.append, "d"))
        await current_node().terminate()

    await Commander().run(Do(body))
    assert ended == ["a", "b", "c", "d"]


async def test_terminating_the_job_whose_turn_it_is_gives_the_turn_on() -> None:
    """TT-5, TT-19. Begun or not, it does not hold the queue."""
    first, second, third = Do(for_ever, "1"), Do(for_ever, "2"), Do(nothing, "3")
    commander = Commander()
    running = asyncio.ensure_future(commander.run(first, second, third))
    await steps()
    await first.terminate()
    await second.terminate()
    await running
    assert [job.state for job in (first, second, third)] == [TERMINATED, TERMINATED, COMPLETED]


async def test_a_body_that_will_not_be_cancelled_is_waited_for_and_terminated() -> None:
    """TT-19. What it returns late is no result; what it raises late is kept and reported, and it stays TERMINATED."""
    reports: list[BaseException] = []

    async def returns() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await steps(3)
        return "late"

    async def raises() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("on the way out")

    async def wraps_the_cancellation() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise RuntimeError("the activity was cancelled") from error

    async def body() -> None:
        nodes = [call(do(one)) for one in (returns, raises, wraps_the_cancellation)]
        await steps()
        for node in nodes:
            await node.terminate()
        assert [node.state for node in nodes] == [TERMINATED] * 3
        assert isinstance(nodes[1].exception, ValueError)
        with pytest.raises(NodeTerminatedError):
            await nodes[0]

    await Commander(on_callback_error=lambda _node, _stage, error: reports.append(error)).run(Do(body))
    assert [str(error) for error in reports] == ["on the way out"]


@pytest.mark.parametrize("up", [0, 1, 2])
async def test_a_node_terminates_itself_or_an_ancestor(up: int) -> None:
    """TT-19. It does not wait for its own end."""
    went_on: list[int] = []

    async def inner() -> None:
        await current_node().ancestor_chain[up].terminate()
        went_on.append(1)

    async def body() -> None:
        call(do(inner))

    job = Do(body)
    commander = Commander()
    if up == 2:
        with pytest.raises(NodeTerminatedError):
            await commander.run(job)
    else:
        await commander.run(job)
    assert job.children[0].state is TERMINATED
    assert job.state is (COMPLETED if up == 0 else TERMINATED)
    assert went_on == []


async def test_an_ancestor_is_terminated_in_a_callback() -> None:
    """TT-19. The callback's node has ended, so the callback goes on; nothing hangs."""
    log: list[str] = []

    async def up(node: TaskNode) -> None:
        assert node.parent is not None
        await node.parent.terminate()
        log.append("went on")

    async def body() -> None:
        call(nothing().on(Stage.AT_HANDLER_END, up, with_node=True))
        await for_ever()

    job = Do(body)
    await Commander().run(job)
    assert log == ["went on"]
    assert job.state is TERMINATED


async def test_terminating_the_commander_from_outside() -> None:
    commander = Commander()
    job = Do(for_ever)
    running = asyncio.ensure_future(commander.run(job))
    await steps()
    await commander.terminate()
    assert (commander.state, job.state) == (TERMINATED, TERMINATED)
    with pytest.raises(NodeTerminatedError):
        await running


async def test_a_cancellation_from_outside_ends_the_tree_and_is_raised_again() -> None:
    """TT-19. Every node TERMINATED, callbacks run, CancelledError out of `run`."""
    seen: list[tuple[str, Stage]] = []

    async def tidies() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await steps(3)

    async def body() -> None:
        call(do(tidies))
        await tidies()

    commander = Commander(listener=lambda node, stage: seen.append((node.path, stage)))
    job = Do(body)
    running = asyncio.ensure_future(commander.run(job, Do(body, "queued")))
    await steps()
    running.cancel("from outside")
    with pytest.raises(asyncio.CancelledError):
        await running
    assert running.cancelled()
    assert seen[-5:] == [
        ("queued.1", Stage.AT_TERMINATE),
        ("Do.1/do.1", Stage.AT_TERMINATE),
        ("Do.1", Stage.AT_TERMINATE),
        ("", Stage.AT_TERMINATE),
        ("", Stage.AT_COMMANDER_END),
    ]
    assert commander.state is TERMINATED


async def test_a_second_cancellation_reaches_a_body_that_ignored_the_first() -> None:
    """TT-19. The tree is never left behind running."""
    ignored: list[int] = []

    async def stubborn() -> None:
        while len(ignored) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ignored.append(1)

    commander = Commander()
    running = asyncio.ensure_future(commander.run(Do(stubborn)))
    for _ in range(2):
        await steps()
        assert not running.done()
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ignored == [1, 1]


async def test_a_cancellation_during_the_last_callbacks_is_raised_again() -> None:
    """TT-19. They are run to the end first."""
    log: list[str] = []
    inside = asyncio.Event()

    async def slow() -> None:
        inside.set()
        await asyncio.Event().wait()

    commander = Commander(on_callback_error=lambda *_: None)
    commander.on(Stage.AT_COMMANDER_END, slow).on(Stage.AT_COMMANDER_END, log.append, "next")
    running = asyncio.ensure_future(commander.run(Do(nothing)))
    await inside.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert log == ["next"]
    assert commander.state is COMPLETED


async def test_a_timeout_around_a_run() -> None:
    """TT-19. asyncio's own ways of cancelling work: the tree ends, and the time-out is told."""
    commander = Commander()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(commander.run(Do(for_ever)), 0.01)
    assert commander.state is TERMINATED
    assert await commander.run(Do(nothing)) is None


async def test_the_tree_is_dropped_from_memory() -> None:
    """TT-19. Where the engine only drops the tree, every task ends promptly: no callback, no listener, no wait."""
    log: list[str] = []
    dropping = False
    other: Any = None

    async def tries_everything() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(asyncio.CancelledError):
                call(nothing())
            with pytest.raises(asyncio.CancelledError):
                await other
            exit_run("no")

    async def swallows() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "swallowed"

    async def breaks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("nobody hears it")

    async def body() -> None:
        nonlocal other
        other = call(for_ever())
        for one in (tries_everything, swallows, breaks):
            node = call(do(one))
            for stage in Stage:
                node.on(stage, log.append, f"callback {stage}")
        call(nothing().on(Stage.AT_HANDLER_END, swallows).on(Stage.AT_HANDLER_END, log.append, "next callback"))
        call(nothing().on(Stage.AT_HANDLER_START, asyncio.Event().wait))
        await steps()
        call(nothing().named("unstarted"))
        ready.set()
        await asyncio.Event().wait()

    ready = asyncio.Event()
    mine = asyncio.all_tasks()
    commander = Commander(
        listener=lambda node, stage: log.append(f"{node.name} {stage}"), is_unwinding=lambda: dropping
    )
    running = asyncio.ensure_future(commander.run(Do(body), Do(body)))
    await ready.wait()
    theirs = [task for task in asyncio.all_tasks() if task not in mine]
    log.clear()
    dropping = True
    for task in theirs:
        task.cancel()
    await steps(2)
    assert all(task.done() for task in theirs)
    assert running.cancelled()
    assert log == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_order_to_stop_ends_the_run_at_once(error: type[BaseException]) -> None:
    """An interrupt in a body does not wait for the parent's body, and comes out bare."""

    async def stops() -> None:
        raise error

    async def body() -> None:
        call(do(stops))
        await for_ever()

    with pytest.raises(error):
        await Commander().run(Do(body))
