"""What hangs other trees: each is tried here, and ends by itself with a plain answer.

Waits that can never end have a page of their own, `test_tree_waits.py`.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

import pytest

from casework.tasktree import (
    Commander,
    Job,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    NotAHandlerError,
    NotAsyncError,
    Stage,
    TaskNode,
    TreeError,
    call,
    current_node,
    exit_run,
    handler,
    submit,
)

from .bodies import Do, do, fails, for_ever, nothing, steps
from .ending import outcome, quiet

EXCEPTION, TERMINATED, COMPLETED = NodeState.EXCEPTION, NodeState.TERMINATED, NodeState.COMPLETED


class Odd(BaseException):
    """No Exception, no cancellation, and nobody's order to stop."""


# ---- bodies


def test_a_task_that_is_an_async_generator() -> None:
    """TT-20. It would never run, so it is refused where it is written; so is such a handler."""
    with pytest.raises(NotAsyncError):

        class Yields(Job):
            async def task(self) -> Any:
                yield 1

    async def yields() -> Any:
        yield 1

    with pytest.raises(NotAsyncError):
        handler(yields)


async def test_a_task_that_is_made_plain_behind_the_back_of_its_class() -> None:
    """TT-20. Where no class statement can see it, the node fails and the run with it."""

    class Fine(Job):
        async def task(self) -> int:
            return 1

    job = Fine()
    job.task = lambda: 1  # type: ignore[method-assign, assignment, return-value]
    error = await outcome(Commander(), job)
    assert isinstance(error, NodeFailedError)
    assert isinstance(error.__cause__, TypeError)
    assert job.state is EXCEPTION


async def test_an_async_function_without_the_decorator() -> None:
    """TT-20. A bare coroutine is no node; calling it as one is refused at once. Awaited, it is part of the body."""

    async def bare() -> TaskNode:
        return current_node()

    async def body() -> TaskNode:
        coroutine: Any = bare()
        with pytest.raises(NotAHandlerError):
            call(coroutine)
        node: TaskNode = await coroutine
        return node

    job = Do(body)
    assert await outcome(Commander(), job) is job


ERRORS = [
    Odd,
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
    StopIteration,
    StopAsyncIteration,
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    asyncio.InvalidStateError,
    TimeoutError,
    RecursionError,
    lambda: BaseExceptionGroup("group", [Odd(), ValueError(1)]),
]


@pytest.mark.parametrize("make", ERRORS)
@pytest.mark.parametrize("kind", ["job", "goes on", "handler", "awaited handler", "queued job"])
async def test_any_error_in_a_body_ends_the_run(make: Callable[[], BaseException], kind: str) -> None:
    """TT-18. Of any class, in any kind of node: `run` tells of it, and all nodes have ended."""

    async def breaks() -> None:
        await asyncio.sleep(0)
        raise make()

    async def body() -> Any:
        call(for_ever())
        match kind:
            case "job":
                await breaks()
            case "goes on":
                return do(breaks)
            case "handler":
                call(do(breaks))
            case "awaited handler":
                await do(breaks)
            case _:
                submit(Do(breaks))
        return None

    commander = Commander()
    error = await outcome(commander, Do(body), Do(nothing))
    assert isinstance(error, (NodeFailedError, KeyboardInterrupt, SystemExit))
    nodes = _all_nodes(commander)
    assert all(node.state.final for node in nodes)
    if isinstance(error, NodeFailedError):
        (failed,) = (node for node in nodes if node.path == error.path)
        assert failed.exception is error.__cause__
    assert commander.state is EXCEPTION
    assert await outcome(commander, Do(_one)) == 1


@pytest.mark.parametrize("make", ERRORS)
async def test_any_error_can_be_received(make: Callable[[], BaseException]) -> None:
    """TT-18. Who awaits the node gets it, or the word that the node was terminated; the run goes on."""

    async def breaks() -> None:
        await asyncio.sleep(0)
        raise make()

    async def body() -> str:
        try:
            await do(breaks)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is received
            return type(error).__name__
        return "nothing"

    given = await outcome(Commander(), Do(body))
    if isinstance(given, (KeyboardInterrupt, SystemExit)):
        return  # an order to stop is everybody's
    wanted = {"StopIteration": "RuntimeError"}.get(name := type(make()).__name__, name)
    cancelled = isinstance(make(), asyncio.CancelledError)
    assert given == (NodeTerminatedError.__name__ if cancelled else wanted)


@pytest.mark.parametrize("error", [ValueError, Odd, GeneratorExit, asyncio.CancelledError])
async def test_any_error_in_the_block_of_an_open_commander(error: type[BaseException]) -> None:
    """TT-9, TT-18. It ends the tree and comes out as itself."""
    commander = Commander()
    with pytest.raises(error):  # noqa: PT012 - the block is what is tested
        async with asyncio.timeout(10), commander:
            node = call(for_ever())
            await steps()
            raise error
    assert node.state is TERMINATED
    assert not commander.running


@pytest.mark.parametrize("value", [None, 0, [], ValueError("x"), Do, Do(steps), handler])
async def test_any_plain_value_is_a_result(value: Any) -> None:
    """TT-8. Whatever a body returns that is no call of a handler: an empty value, an error, a class, a free Job."""

    async def body() -> Any:
        return value

    assert await outcome(Commander(), Do(body)) is value


async def test_a_job_that_returns_a_node_of_its_own_line() -> None:
    """TT-8, TT-20. Handler calls that end only after the Job, or ended long ago, or were used, hang nothing."""

    async def above() -> None:
        top = current_node()

        async def returns_it() -> Any:
            return top

        await submit(Do(returns_it, "returns"))

    async def ended() -> Any:
        node = call(nothing())
        await node
        return node

    async def terminated() -> Any:
        node = nothing()
        await node.terminate()
        return node

    error = await outcome(Commander(), Do(lambda: _go_on(do(lambda: do(above)))))
    assert isinstance(error, NodeFailedError)
    assert isinstance(error.__cause__, TreeError)
    assert await outcome(Commander(), Do(ended)) is None
    assert isinstance(await outcome(Commander(), Do(terminated)), NodeFailedError)


# ---- callbacks


def _raises(make: Callable[[], BaseException], slow: bool) -> Callable[[], Any]:
    def now() -> None:
        raise make()

    async def later() -> None:
        await asyncio.sleep(0)
        raise make()

    return later if slow else now


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("make", [ValueError, Odd, GeneratorExit, StopIteration, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("stage", list(Stage))
async def test_any_error_in_a_callback_of_any_stage(
    stage: Stage, make: Callable[[], BaseException], slow: bool, strict: bool
) -> None:
    """TT-16. Sync and async, Exception or not, strict or not: noted and reported, or the node's own; never a hang."""
    reports: list[Stage] = []
    subjects: list[TaskNode] = []

    async def body() -> str:
        node = {Stage.AT_EXCEPTION: lambda: fails(LookupError()), Stage.AT_TERMINATE: for_ever}.get(stage, nothing)()
        subjects.append(call(node.on(stage, _raises(make, slow)).on(stage, subjects.append, node)))
        await steps()
        await node.terminate()
        try:
            await node
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is received
            return type(error).__name__
        return "none"

    job = Do(body)
    if stage in (Stage.AT_JOB_START, Stage.AT_JOB_END):
        job = Do(_one).on(stage, _raises(make, slow)).on(stage, lambda: subjects.append(job))
        subjects.append(job)
    commander = Commander(strict_callbacks=strict, on_callback_error=lambda _node, stage, _error: reports.append(stage))
    given = await outcome(commander, job)
    assert all(node.state.final for node in _all_nodes(commander))
    assert all(not node.terminating for node in _all_nodes(commander))
    if make in (KeyboardInterrupt, SystemExit):
        assert type(given) is make
    elif stage in (Stage.AT_JOB_START, Stage.AT_HANDLER_START) and strict:
        assert subjects[0].state is EXCEPTION
        assert len(subjects) == 1, "the next callback has no node to start"
    elif stage is not Stage.AT_COMMANDER_END:
        assert (stage, len(subjects)) == (reports[0], 2)
        assert subjects[0].notes
        if stage in (Stage.AT_JOB_END, Stage.AT_HANDLER_END):
            assert subjects[0].state is (EXCEPTION if strict else COMPLETED)
    else:
        assert reports == [stage]


# ---- exit


@pytest.mark.parametrize("where", ["job", "handler", "goes on", "queued job", "deep"])
@pytest.mark.parametrize("then", ["returns", "waits", "wants more", "raises"])
async def test_exit_from_inside_a_node(where: str, then: str) -> None:  # noqa: C901  # a table of places and ways
    """TT-10. From any kind of node, whatever its body does next: the run ends, and says the result or the error."""

    async def leave() -> None:
        await asyncio.sleep(0)
        exit_run("left")
        if then == "waits":
            await asyncio.Event().wait()
        if then == "wants more":
            call(for_ever())
        if then == "raises":
            raise ValueError("after exit")

    async def body() -> Any:
        call(for_ever())
        submit(Do(nothing, "queued"))
        match where:
            case "job":
                await leave()
            case "handler":
                call(do(leave))
                await for_ever()
            case "goes on":
                return do(leave)
            case "queued job":
                submit(Do(leave))
            case _:
                await do(lambda: do(lambda: do(leave)))
        return None

    commander = quiet()
    given = await outcome(commander, Do(body), Do(nothing))
    assert all(node.state.final for node in _all_nodes(commander))
    if then != "raises":
        assert given == "left"
    else:
        assert given == "left" or isinstance(given, NodeFailedError)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("stage", list(Stage))
async def test_exit_in_a_callback_of_any_stage(stage: Stage, slow: bool) -> None:
    """TT-10. Sync and async. After the end of the Commander there is nothing to exit from: that is an error."""

    async def leaves_later() -> None:
        await asyncio.sleep(0)
        exit_run("left")

    callback = leaves_later if slow else lambda: exit_run("left")

    async def body() -> None:
        node = call({Stage.AT_EXCEPTION: fails(ValueError("x"))}.get(stage, nothing()).on(stage, callback))
        if stage is Stage.AT_TERMINATE:
            await node.terminate()
        await for_ever()

    job = Do(body)
    commander = quiet()
    if stage in (Stage.AT_JOB_START, Stage.AT_JOB_END, Stage.AT_COMMANDER_END):
        job = Do(_one).on(stage, callback)
    given = await outcome(commander, job)
    assert given == (1 if stage is Stage.AT_COMMANDER_END else "left")
    assert all(node.state.final for node in _all_nodes(commander))
    if stage is Stage.AT_COMMANDER_END:
        assert "CommanderNotRunningError" in job.notes[0]


async def _one() -> int:
    return 1


async def _go_on(node: TaskNode) -> TaskNode:
    return node


def _all_nodes(commander: Commander) -> list[TaskNode]:
    nodes: list[TaskNode] = [commander]
    for node in nodes:
        nodes.extend(node.children)
    return nodes
