"""The first slips of somebody new: each is refused by name where it is made."""

import asyncio
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, for_ever, steps

from casework.tasktree import (
    Commander,
    EndlessWaitError,
    Job,
    NodeFailedError,
    NotAsyncError,
    OptionError,
    OtherLoopError,
    Stage,
    submit,
)


async def eight() -> int:
    """A body."""
    await steps()
    return 8


async def test_what_a_body_returns_by_a_slip_is_refused() -> None:
    """TT-8, TT-20. A coroutine of a function without the decorator, or a handler that was not called."""

    async def plain() -> None:
        return None

    async def returns_a_coroutine() -> Any:
        return plain()

    async def returns_the_handler() -> Any:
        return for_ever

    for body, remedy in ((returns_a_coroutine, "Put @handler"), (returns_the_handler, "Call it")):
        with pytest.raises(NodeFailedError, match=remedy):
            await Commander().run(Do(body))


async def test_a_job_without_a_body_is_refused_before_it_is_queued() -> None:
    """TT-20. A class without `task` may be a base, and no more."""

    class Base(Job):
        pass

    async with Commander() as commander:
        with pytest.raises(NotAsyncError, match="no body"):
            submit(Base())
        assert commander.children == ()


async def test_callbacks_and_parents_must_be_what_they_are_called() -> None:
    """TT-13, TT-20. Refused where they are given."""
    for bad in (None, 3, "text"):
        with pytest.raises(OptionError, match="give a function"):
            Do(eight).on(Stage.AT_JOB_END, bad)  # type: ignore[arg-type]  # that is the misuse
        with pytest.raises(OptionError, match="give Callbacks"):
            Do(eight).merge(bad)  # type: ignore[arg-type]  # that is the misuse
    async with Commander():
        for no_node in (Do, "path.1", 7):
            with pytest.raises(OptionError, match="is no node"):
                submit(Do(eight), parent=no_node)  # type: ignore[arg-type]  # that is the misuse


async def test_a_loop_is_not_made_inside_a_loop() -> None:
    """TT-9, TT-20. By name, and without a coroutine that is left over."""
    with pytest.raises(OtherLoopError, match="await commander"):
        Commander().run_sync(Do(eight))


async def test_a_future_is_not_waited_for_in_the_loop_that_does_the_work() -> None:
    """TT-11, TT-20. It would stand still; once there is a result, it can be asked for."""
    async with Commander() as commander:
        future = commander.submit_threadsafe(Do(eight))
        for ask in (future.result, future.exception):
            with pytest.raises(EndlessWaitError, match="wrap_future"):
                ask()
        assert await asyncio.wrap_future(future) == 8
        assert future.result() == 8
