"""Jobs that are declared inline: nodes as all others, whose bodies run in their turn without an asyncio task."""

import asyncio
import contextvars
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
    current_node,
    submit,
)

from .bodies import Do, nothing, steps


class Quick(Job, inline=True):
    """An inline Job whose body is given."""

    def __init__(self, body: Callable[[], Any], name: str | None = None) -> None:
        super().__init__(name)
        self.body = body

    def task(self) -> Any:
        return self.body()


async def test_it_is_a_node_as_any_other() -> None:
    """TT-1. It has its place, its times, its result; only no task of asyncio runs it."""
    seen: list[object] = []

    def body() -> str:
        seen.extend((current_node().path, asyncio.current_task()))
        return "made"

    async with Commander() as commander:
        job = submit(Quick(body, "sum"))
        assert (job.state, job.began, await job) == (NodeState.ACTIVE, None, "made")
    assert seen == ["sum.1", None]
    assert (job.state, job.result, commander.children) == (NodeState.COMPLETED, "made", (job,))
    assert job.began is not None
    assert job.ended is not None
    assert job.ended >= job.began


async def test_it_has_its_turn() -> None:
    """Among Jobs of both sorts the order is that of submission, the higher priority first."""
    order: list[int] = []

    async def slow(number: int) -> None:
        await steps()
        order.append(number)

    def quick(number: int) -> Quick:
        return Quick(lambda: order.append(number))

    async with Commander():
        submit(Do(lambda: slow(1)))
        submit(quick(2))
        submit(Do(lambda: slow(3)))
        submit(quick(4))
        submit(quick(0), priority=1)
    assert order == [1, 0, 2, 3, 4]


async def test_it_begins_after_what_its_submitter_does_until_it_waits() -> None:
    done: list[str] = []
    async with Commander():
        submit(Quick(lambda: done.append("body")))
        done.append("submitter")
    assert done == ["submitter", "body"]


async def test_what_it_submits_is_below_it_and_holds_it_open() -> None:
    def body() -> None:
        submit(Quick(lambda: 1, "below"))

    async with Commander() as commander:
        job = submit(Quick(body, "above"))
    assert [child.path for child in job.children] == ["above.1/below.1"]
    assert all(node.state is NodeState.COMPLETED for node in (job, *job.children, commander))


async def test_its_error_is_carried_as_any() -> None:
    def body() -> None:
        raise ValueError("no sum")

    with pytest.raises(NodeFailedError, match=r"sum\.1") as caught:
        await Commander().run(Quick(body, "sum"))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_after_one_that_fails_the_next_has_its_turn() -> None:
    def body() -> None:
        raise ValueError("no sum")

    async with Commander(isolate=True):
        failed, after = submit(Quick(body)), submit(Quick(lambda: 2))
    assert (failed.state, after.state, after.result) == (NodeState.EXCEPTION, NodeState.COMPLETED, 2)


async def test_a_listener_is_told_of_it_as_of_any() -> None:
    async def body() -> int:
        return 1

    def told(job: Job) -> list[Stage]:
        return [stage for node, stage in heard if node is job]

    heard: list[tuple[TaskNode, Stage]] = []
    async with Commander(listener=lambda node, stage: heard.append((node, stage))):
        quick, other = submit(Quick(lambda: 1)), submit(Do(body))
    assert told(quick) == told(other) == [Stage.AT_JOB_START, Stage.AT_JOB_END]


async def test_its_callbacks_run_those_that_are_async_too() -> None:
    done: list[str] = []

    async def later(word: str) -> None:
        await asyncio.sleep(0)
        done.append(word)

    async with Commander():
        job = submit(Quick(lambda: done.append("body")).on(Stage.AT_JOB_START, later, "start"))
        job.on(Stage.AT_JOB_END, later, "end")
        late = submit(Quick(lambda: done.append("late")))
        late.on(Stage.AT_JOB_START, done.append, "late start")
    assert done == ["start", "body", "end", "late start", "late"]


async def test_a_time_limit_is_that_of_all_below_it() -> None:
    async with Commander(isolate=True):
        job = submit(Quick(lambda: submit(Do(asyncio.Event().wait)) and None).within(0.01))
    assert job.state is NodeState.EXCEPTION
    assert "did not end within" in str(job.exception)


@pytest.mark.parametrize("turns", [0, 1])
async def test_it_is_terminated_before_its_body_starts(turns: int) -> None:
    """Whether it waits for its turn, or has it already and the loop has not come to it."""
    done: list[str] = []
    async with Commander() as commander:
        if not turns:
            submit(Do(steps))
        job, after = submit(Quick(lambda: done.append("body"))), submit(Quick(lambda: done.append("after")))
        await job.terminate()
        with pytest.raises(NodeTerminatedError):
            await job
    assert (job.state, after.state, commander.state) == (
        NodeState.TERMINATED,
        NodeState.COMPLETED,
        NodeState.COMPLETED,
    )
    assert done == ["after"]


async def test_its_context_is_its_own() -> None:
    word = contextvars.ContextVar("word", default="none")
    seen: list[str] = []

    def body() -> None:
        seen.append(word.get())
        word.set("inside")

    async with Commander():
        word.set("outside")
        submit(Quick(body))
        submit(Quick(body))
        await asyncio.sleep(0)
    assert (seen, word.get()) == (["outside", "outside"], "outside")


def test_a_body_that_could_wait_is_refused() -> None:
    """TT-20. Refused where the class is written, as is one that would only be a generator."""
    with pytest.raises(NotAsyncError, match=r"Waits\.task is no plain `def`"):

        class Waits(Job, inline=True):
            async def task(self) -> None: ...

    with pytest.raises(NotAsyncError, match=r"Yields\.task is no plain `def`"):

        class Yields(Job, inline=True):
            def task(self) -> Any:
                yield 1


def test_what_is_made_of_an_inline_class_is_inline() -> None:
    class More(Quick):
        def task(self) -> Any:
            return (asyncio.current_task(), super().task())

    assert Commander().run_sync(More(lambda: 1)) == (None, 1)


@pytest.mark.parametrize("set_up", [lambda job: job, lambda job: job.within(60)])
@pytest.mark.parametrize("body", [nothing, lambda: nothing, steps])
async def test_it_cannot_go_on_as_something_else(body: Callable[[], Any], set_up: Callable[[Job], Job]) -> None:
    """TT-20."""
    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(set_up(Quick(body)))
    assert isinstance(caught.value.__cause__, NotAHandlerError)
