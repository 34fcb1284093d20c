"""Stages, callbacks and the listener, and what becomes of their errors."""

import asyncio
from typing import Any

import pytest

from casework.tasktree import (
    Callbacks,
    Commander,
    NodeFailedError,
    NodeState,
    Stage,
    TaskNode,
    call,
    current_node,
)

from .bodies import Do, do, fails, for_ever, nothing


async def fine() -> str:
    return "fine"


def recorder(log: list[str]) -> Callbacks:
    """Callbacks that write down every stage, in both colours."""

    def plain(node: TaskNode, stage: str) -> None:
        assert current_node() is node
        log.append(f"{node.name} {stage} {node.state}")

    async def slow(node: TaskNode, stage: str) -> None:
        await asyncio.sleep(0)
        assert current_node() is node
        log.append(f"{node.name} {stage} later")

    callbacks = Callbacks()
    for stage in Stage:
        callbacks.on(stage, plain, stage.value, with_node=True).on(stage, slow, stage.value, with_node=True)
    return callbacks


async def test_stages_of_nodes_that_complete() -> None:
    """TT-13. Sync and async functions, several per stage, in order; the state is final at an end (TT-15)."""
    log: list[str] = []

    async def body() -> None:
        await nothing().merge(recorder(log))

    await Commander().run(Do(body, "job").merge(recorder(log)))
    assert log == [
        "job at_job_start ACTIVE",
        "job at_job_start later",
        "nothing at_handler_start ACTIVE",
        "nothing at_handler_start later",
        "nothing at_handler_end COMPLETED",
        "nothing at_handler_end later",
        "job at_job_end COMPLETED",
        "job at_job_end later",
        "job at_commander_end COMPLETED",
        "job at_commander_end later",
        "nothing at_commander_end COMPLETED",
        "nothing at_commander_end later",
    ]


async def test_stages_of_a_node_that_fails() -> None:
    """TT-15. at_exception, then the end stage, state EXCEPTION."""
    log: list[str] = []

    async def body() -> None:
        with pytest.raises(ValueError, match="x"):
            await fails(ValueError("x")).merge(recorder(log))

    await Commander().run(Do(body))
    assert log[2:6] == [
        "fails at_exception EXCEPTION",
        "fails at_exception later",
        "fails at_handler_end EXCEPTION",
        "fails at_handler_end later",
    ]


async def test_stages_of_a_node_that_is_terminated() -> None:
    """TT-15. at_terminate only, whether its body had begun or not."""
    log: list[str] = []

    async def body() -> None:
        node = call(for_ever().merge(recorder(log)))
        await nothing()
        await node.terminate()
        await call(for_ever().named("unstarted").merge(recorder(log))).terminate()

    await Commander().run(Do(body))
    assert log[2:6] == [
        "for_ever at_terminate TERMINATED",
        "for_ever at_terminate later",
        "unstarted at_terminate TERMINATED",
        "unstarted at_terminate later",
    ]


async def test_callbacks_at_the_end_of_the_commander_run_once() -> None:
    """TT-17. Even for a node that ended long before, and for one that was terminated."""
    log: list[str] = []

    async def body() -> None:
        await nothing().on(Stage.AT_COMMANDER_END, log.append, "early")
        node = call(for_ever())
        node.on(Stage.AT_COMMANDER_END, log.append, "added late")
        await node.terminate()
        log.append("body ends")

    commander = Commander().on(Stage.AT_COMMANDER_END, log.append, "commander")
    await commander.run(Do(body))
    assert log == ["body ends", "early", "added late", "commander"]
    log.clear()
    await commander.run()
    assert log == ["commander"]


async def test_callbacks_merge() -> None:
    """TT-13. Merging keeps both, in order, and changes neither."""
    log: list[str] = []
    first = Callbacks().on(Stage.AT_JOB_END, log.append, "first")
    second = Callbacks().on(Stage.AT_JOB_END, log.append, "second")
    merged = first | second
    await Commander().run(Do(fine).merge(merged))
    assert log == ["first", "second"]
    assert len(first.at(Stage.AT_JOB_END)) == 1
    with pytest.raises(ValueError, match="at_nothing"):
        Callbacks().on("at_nothing", log.append)  # type: ignore[arg-type]


async def test_a_job_that_goes_on_as_a_handler_runs_the_callbacks_of_both() -> None:
    """TT-8, TT-13. The listener sees one node, a Job; the handler's callbacks run on it."""
    log: list[str] = []
    seen: list[str] = []

    async def body() -> Any:
        return do(fine).merge(recorder(log))

    await Commander(listener=lambda node, stage: seen.append(f"{node.path} {stage}")).run(Do(body, "job"))
    assert seen == ["job.1 at_job_start", "job.1 at_job_end", " at_commander_end"]
    assert [line for line in log if "later" not in line] == [
        "job at_handler_start ACTIVE",
        "job at_handler_end COMPLETED",
        "job at_job_end COMPLETED",
        "job at_commander_end COMPLETED",
    ]


def _raise() -> None:
    raise ZeroDivisionError("callback")


async def _raise_later() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("callback")


@pytest.mark.parametrize("callback", [_raise, _raise_later])
@pytest.mark.parametrize("stage", [Stage.AT_JOB_START, Stage.AT_JOB_END, Stage.AT_COMMANDER_END])
async def test_an_error_in_a_callback_hangs_nothing(callback: Any, stage: Stage) -> None:
    """TT-16. It is noted at the node and reported, and the tree goes on with the next callback."""
    reports: list[tuple[str, Stage, str]] = []
    after: list[str] = []
    commander = Commander(
        on_callback_error=lambda node, stage, error: reports.append((node.path, stage, type(error).__name__))
    )
    job = Do(fine).on(stage, callback).on(stage, after.append, "next")
    assert await commander.run(job) == "fine"
    assert reports == [("Do.1", stage, "ZeroDivisionError")]
    assert after == ["next"]
    assert job.state is NodeState.COMPLETED
    assert "ZeroDivisionError" in job.notes[0]


@pytest.mark.parametrize("stage", [Stage.AT_EXCEPTION, Stage.AT_TERMINATE])
async def test_an_error_in_a_callback_of_a_bad_end_changes_nothing(stage: Stage) -> None:
    """TT-16."""

    async def body() -> None:
        node = call(fails(ValueError("x")).on(stage, _raise))
        other = call(for_ever().on(stage, _raise_later))
        with pytest.raises(ValueError, match="x"):
            await node
        await other.terminate()
        assert node.state is NodeState.EXCEPTION
        assert other.state is NodeState.TERMINATED

    await Commander(on_callback_error=lambda *_: None).run(Do(body))


async def test_an_error_in_the_listener_hangs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """TT-14, TT-16. Without a hook, it is logged; a broken hook hangs nothing either."""

    def listener(node: TaskNode, stage: Stage) -> None:
        raise ZeroDivisionError(stage)

    def hook(*_: Any) -> None:
        raise RuntimeError("broken hook")

    assert await Commander(listener=listener).run(Do(fine)) == "fine"
    assert "at_job_end" in caplog.text
    assert await Commander(listener=listener, on_callback_error=hook).run(Do(fine)) == "fine"
    assert "broken hook" in caplog.text


@pytest.mark.parametrize("callback", [_raise, _raise_later])
@pytest.mark.parametrize("stage", [Stage.AT_JOB_START, Stage.AT_JOB_END])
async def test_strict_callbacks_fail_the_node(callback: Any, stage: Stage) -> None:
    """TT-16. With `strict_callbacks` the error is the node's: before the body instead of it, after it all the same."""
    ran: list[int] = []
    seen: list[Stage] = []

    async def body() -> None:
        ran.append(1)

    job = Do(body).on(stage, callback)
    commander = Commander(strict_callbacks=True, listener=lambda node, stage: seen.append(stage))
    with pytest.raises(NodeFailedError) as caught:
        await commander.run(job)
    assert caught.value.path == "Do.1"
    assert job.state is NodeState.EXCEPTION
    assert Stage.AT_EXCEPTION in seen
    assert ran == ([] if stage is Stage.AT_JOB_START else [1])


class EngineError(BaseException):
    """By which an engine would control the code."""


@pytest.mark.parametrize("stage", [Stage.AT_JOB_START, Stage.AT_JOB_END])
async def test_an_error_of_the_engine_passes_through_callbacks(stage: Stage) -> None:
    """TT-19. It is not kept as a note: `run` raises it bare."""

    def control() -> None:
        raise EngineError

    with pytest.raises(EngineError):
        await Commander(engine_errors=(EngineError,)).run(Do(fine).on(stage, control), Do(fine))


async def test_an_error_of_the_engine_passes_through_bodies() -> None:
    """TT-19. From any depth, bare."""

    async def deep() -> None:
        raise EngineError

    async def body() -> None:
        call(do(deep))

    with pytest.raises(EngineError):
        await Commander(engine_errors=(EngineError,)).run(Do(body))


async def test_a_parent_ends_after_the_callbacks_of_its_children() -> None:
    """TT-4, TT-13. Asynchronous end callbacks belong to the node: parent and awaiters wait for them."""
    log: list[str] = []

    async def slowly() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("child's callback")

    async def body() -> None:
        await nothing().on(Stage.AT_HANDLER_END, slowly)
        log.append("awaited")
        call(nothing().on(Stage.AT_HANDLER_END, slowly))

    await Commander().run(Do(body).on(Stage.AT_JOB_END, log.append, "job's callback"))
    assert log == ["child's callback", "awaited", "child's callback", "job's callback"]


async def test_a_callback_may_look_at_its_own_node() -> None:
    """Awaiting a node in its own end callback gives the outcome that it has by then."""
    results: list[Any] = []

    async def look(node: TaskNode) -> None:
        results.append(await node)
        await node.terminate()

    await Commander().run(Do(fine).on(Stage.AT_JOB_END, look, with_node=True))
    assert results == ["fine"]


@pytest.mark.parametrize("callback", [_raise, _raise_later])
async def test_a_strict_callback_at_the_end_of_the_commander_fails_the_run(callback: Any) -> None:
    """TT-3, TT-16. The node has ended long before and stays as it is; the Commander fails, and names the node."""
    seen: list[tuple[str, Stage]] = []
    job = Do(fine).on(Stage.AT_COMMANDER_END, callback)
    commander = Commander(strict_callbacks=True, listener=lambda node, stage: seen.append((node.path, stage)))
    with pytest.raises(NodeFailedError) as caught:
        await commander.run(job)
    assert caught.value.path == "Do.1"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert (job.state, commander.state) == (NodeState.COMPLETED, NodeState.EXCEPTION)
    assert seen[-2:] == [("", Stage.AT_EXCEPTION), ("", Stage.AT_COMMANDER_END)]
    with pytest.raises(ZeroDivisionError):
        await Commander(strict_callbacks=True).on(Stage.AT_COMMANDER_END, callback).run(Do(fine))
