"""Misuse is an immediate, named error (TT-20)."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from casework.tasktree import (
    AlreadyAttachedError,
    Commander,
    CommanderNotRunningError,
    EndlessWaitError,
    Job,
    NoCurrentNodeError,
    NodeEndedError,
    NodeFailedError,
    NotAHandlerError,
    NotAJobError,
    NotAsyncError,
    NotAttachedError,
    TreeError,
    call,
    current_node,
    handler,
    submit,
)

from .bodies import Do, do, nothing, steps


def test_a_job_whose_task_is_not_async() -> None:
    """TT-20. Refused where the class is written."""
    with pytest.raises(NotAsyncError, match=r"Plain\.task is not an `async def`"):

        class Plain(Job):
            def task(self) -> Any:
                return 1


@pytest.mark.parametrize("function", [len, lambda: None, Job, None])
def test_a_handler_that_is_not_async(function: Any) -> None:
    """TT-20."""
    with pytest.raises(NotAsyncError):
        handler(function)


async def test_the_same_job_twice() -> None:
    """TT-20."""

    async def body() -> None:
        job = submit(Do(steps))
        with pytest.raises(AlreadyAttachedError):
            submit(job)
        node = call(nothing())
        with pytest.raises(AlreadyAttachedError):
            call(node)

    done = Do(body)
    await Commander().run(done)
    with pytest.raises(AlreadyAttachedError):
        await Commander().run(done)


async def test_something_that_is_not_a_job() -> None:
    """TT-20. The class, a coroutine, a handler call; and calling what is no handler call."""

    async def body() -> None:
        no_jobs: list[Any] = [Do, nothing(), 1, None, Commander()]
        for wrong in no_jobs:
            with pytest.raises(NotAJobError):
                submit(wrong)
        no_handlers: list[Any] = [nothing, Do(steps), None]
        for wrong in no_handlers:
            with pytest.raises(NotAHandlerError):
                call(wrong)

    await Commander().run(Do(body))


async def test_outside_any_node() -> None:
    """TT-20. Awaiting or calling a handler, submitting, asking for the node."""
    with pytest.raises(NoCurrentNodeError):
        await nothing()
    with pytest.raises(NoCurrentNodeError):
        call(nothing())
    with pytest.raises(NoCurrentNodeError):
        submit(Do(steps))
    with pytest.raises(NoCurrentNodeError):
        current_node()
    with pytest.raises(CommanderNotRunningError):
        call(nothing(), parent=Commander())


async def test_a_child_of_an_ended_node() -> None:
    """TT-20. Nor of one that has no place yet."""

    async def body() -> None:
        ended = call(nothing())
        await ended
        for parent in (ended, Do(steps)):
            with pytest.raises(NodeEndedError):
                call(nothing(), parent=parent)
            with pytest.raises(NodeEndedError):
                submit(Do(steps), parent=parent)
        assert ended.children == ()

    job = Do(body)
    await Commander().run(job)
    with pytest.raises(NodeEndedError):
        call(nothing(), parent=job)


async def test_awaiting_a_job_that_was_not_submitted() -> None:
    async def body() -> None:
        with pytest.raises(NotAttachedError):
            await Do(steps)

    await Commander().run(Do(body))


async def test_a_handler_call_that_continues_a_job_is_used() -> None:
    kept: list[Any] = []

    async def body() -> Any:
        kept.append(do(steps))
        return kept[0]

    async def later() -> None:
        with pytest.raises(AlreadyAttachedError):
            call(kept[0])
        with pytest.raises(AlreadyAttachedError):
            await kept[0]

    await Commander().run(Do(body), Do(later))


@pytest.mark.parametrize("up", [0, 1, 2])
async def test_a_node_cannot_await_itself_or_an_ancestor(up: int) -> None:
    """TT-20. A wait that can never end."""

    async def inner() -> None:
        with pytest.raises(EndlessWaitError):
            await current_node().ancestor_chain[up]

    async def body() -> None:
        await do(inner)

    await Commander().run(Do(body))


async def test_wrong_arguments_of_a_handler_fail_its_node() -> None:
    async def body() -> None:
        call(nothing(1, 2))  # type: ignore[call-arg]

    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(Do(body))
    assert caught.value.path == "Do.1/nothing.1"
    assert isinstance(caught.value.__cause__, TypeError)


def test_all_errors_are_tree_errors() -> None:
    import casework.tasktree as tree

    errors = [one for name, one in vars(tree).items() if name.endswith("Error")]
    assert len(errors) > 10
    assert all(issubclass(one, TreeError) for one in errors)


def test_the_tree_imports_nothing_else() -> None:
    """It can be used alone: of the package only itself, of others nothing but the standard library."""
    code = (
        "import json, sys; before = set(sys.modules); from casework.tasktree import Commander; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    imported = json.loads(done.stdout)
    ours = [name for name in imported if name.partition(".")[0] == "casework"]
    assert "casework.tasktree.commander" in ours
    assert [one for one in ours if one != "casework" and not one.startswith("casework.tasktree")] == []
    others = {name.partition(".")[0] for name in imported} - {"casework"}
    assert sorted(others - sys.stdlib_module_names) == []


async def test_a_job_can_be_awaited_from_another_task() -> None:
    async def body() -> int:
        return 5

    job = Do(body)
    running = asyncio.ensure_future(Commander().run(job))
    await asyncio.sleep(0)
    assert await job == 5
    await running
