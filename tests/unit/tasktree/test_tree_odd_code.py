"""Code that is odd but legal: dataclass Jobs, frozen errors, failing clocks and hooks, no stack. The tree holds."""

import asyncio
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, do, fails, for_ever, nothing, steps

from casework.tasktree import (
    Callbacks,
    Commander,
    CommanderBusyError,
    Job,
    NodeEndedError,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    NotAtRestError,
    OtherLoopError,
    ReservedNameError,
    Stage,
    TimeLimitError,
    call,
    handler,
    send,
    submit,
)


@dataclass
class Alike(Job):
    """Two of these are equal, and have no hash."""

    number: int = 0

    async def task(self) -> int:
        await asyncio.sleep(0)
        return self.number


async def test_jobs_that_compare_and_cannot_be_hashed() -> None:
    """TT-6, TT-17. Nodes are told apart by what they are, not by what they say of themselves."""
    told: list[str] = []
    made = [Alike(3).on(Stage.AT_COMMANDER_END, lambda node: told.append(node.path), with_node=True) for _ in range(2)]
    async with Commander(keep="none"):
        assert [await submit(job) for job in made] == [3, 3]
    assert told == ["Alike.1", "Alike.2"]


@pytest.mark.parametrize("name", ["result", "state", "path", "data", "on", "_drive_", "terminate"])
def test_a_name_of_the_tree_is_not_taken_for_ones_own(name: str) -> None:
    """TT-20. At the definition of the class: as attribute, method or annotation."""
    with pytest.raises(ReservedNameError, match=f"has {name} of its own"):
        type("Own", (Job,), {name: None, "task": Alike.task})
    with pytest.raises(ReservedNameError):
        type("Own", (Job,), {"__annotations__": {name: int}, "task": Alike.task})


async def test_private_names_of_a_job_are_the_users() -> None:
    """TT-6. What a Job keeps under usual names does not meet what the tree keeps."""

    class Own(Job):
        def __init__(self) -> None:
            for name in ("task", "result", "state", "context", "parent", "name", "flags", "open", "children", "queue"):
                setattr(self, f"_{name}", {"mine": name})

        async def task(self) -> Any:
            await asyncio.sleep(0)
            return {name: value for name, value in vars(self).items() if name.startswith("_")}

    assert len(await Commander().run(Own())) == 10


@dataclass(frozen=True)
class Declined(Exception):
    """An error that refuses every assignment."""

    code: int


async def test_errors_that_refuse_assignments_and_causes_in_a_circle() -> None:
    """TT-18, TT-19. They come up as any other."""
    with pytest.raises(NodeFailedError, match=r"Do\.1/fails\.1"):
        await Commander().run(Do(lambda: _await(call(fails(Declined(5))))))

    async def in_a_circle() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            first, second = ValueError("a"), ValueError("b")
            first.__cause__, second.__cause__ = second, first
            raise first from second

    async def body() -> NodeState:
        node = call(do(in_a_circle))
        await steps()
        await node.terminate()
        return node.state

    assert (
        await asyncio.wait_for(Commander(on_callback_error=lambda *_: None).run(Do(body)), 10) is NodeState.TERMINATED
    )


async def _await(node: Any) -> Any:
    return await node


async def test_a_clock_that_fails_does_not_hang_the_tree() -> None:
    """TT-12. Its last time is used, and the failure is logged."""

    class Failing:
        calls = 0

        def time(self) -> float:
            self.calls += 1
            if self.calls > 2:
                raise OSError("the clock is gone")
            return float(self.calls)

        def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Any:
            return asyncio.get_running_loop().call_later(delay, callback, *args)

    commander = Commander(clock=Failing())
    assert await asyncio.wait_for(commander.run(Alike(4)), 10) == 4
    assert commander.children[0].ended == 2.0


@pytest.mark.parametrize("raised", [asyncio.CancelledError, GeneratorExit, ValueError])
async def test_a_hook_that_fails_does_not_hang_the_tree(raised: type[BaseException]) -> None:
    """TT-16."""

    def hook(*_: object) -> None:
        raise raised

    def bad() -> None:
        raise ValueError("callback")

    job = Alike(5).on(Stage.AT_JOB_END, bad)
    assert await asyncio.wait_for(Commander(on_callback_error=hook).run(job), 10) == 5


@pytest.mark.parametrize("how", ["thread", "soon"])
async def test_work_that_comes_between_the_last_end_and_the_end_of_the_run(how: str) -> None:
    """TT-9, TT-11. It is done, or refused; the run never turns round on the spot."""
    later = Alike(9)

    async def body() -> None:
        if how == "thread":
            commander.submit_threadsafe(later)
        else:
            asyncio.get_running_loop().call_soon(lambda: submit(later, parent=commander))

    commander = Commander()
    await asyncio.wait_for(commander.run(Do(body)), 10)
    assert later.state is NodeState.COMPLETED


async def test_a_run_whose_first_jobs_are_refused_is_over() -> None:
    """TT-9, TT-27. The Commander can run again."""
    commander = Commander()
    with pytest.raises(NotAtRestError):
        await commander.run(Alike(1), Alike(2).reopen(7))
    assert not commander.running
    assert await asyncio.wait_for(commander.run(Alike(3)), 10) == 3


async def test_a_run_is_not_begun_while_the_last_one_ends() -> None:
    """TT-9, TT-17. Its end callbacks are part of it."""
    go_on = asyncio.Event()
    commander = Commander().on(Stage.AT_COMMANDER_END, go_on.wait)
    first = asyncio.ensure_future(commander.run(Alike(1)))
    await steps()
    with pytest.raises(CommanderBusyError):
        await commander.run(Alike(2))
    go_on.set()
    assert await first == 1


async def test_a_time_limit_of_an_open_commander_ends_its_body() -> None:
    """TT-12. The `async with` is left by the time limit's error; a cancellation from outside stays one."""
    with pytest.raises(TimeLimitError):
        async with Commander().within(0.01):
            await asyncio.wait_for(asyncio.Event().wait(), 10)
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]  # a test runs in a task

    async def opened() -> None:
        async with Commander().within(0.01):
            try:
                await asyncio.Event().wait()
            finally:
                running.cancel()

    running = asyncio.ensure_future(opened())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)


async def test_callbacks_that_come_too_late_are_refused() -> None:
    """TT-13, TT-17. But those for the end of the Commander still run."""
    told: list[str] = []
    async with Commander() as commander:
        job = submit(Alike(1))
        await job
        with pytest.raises(NodeEndedError, match="has ended"):
            job.on(Stage.AT_JOB_END, told.append, "never")
        with pytest.raises(NodeEndedError):
            job.merge(Callbacks().on(Stage.AT_COMMANDER_END, told.append, "no").on(Stage.AT_JOB_END, told.append, "no"))
        job.on(Stage.AT_COMMANDER_END, told.append, "end")
        assert commander.running
    assert told == ["end"]


async def test_a_node_ended_before_it_began_can_be_awaited() -> None:
    """TT-19. It has no result, and says so."""
    for node in (Alike(1), nothing()):
        await node.terminate()
        with pytest.raises(NodeTerminatedError):
            await node


async def test_a_partial_function_is_a_handler() -> None:
    """TT-7. Any async function."""

    async def add(one: int, other: int) -> int:
        return one + other

    async with Commander():
        assert await call(handler(functools.partial(add, 3))(4)) == 7


async def test_what_cannot_start_is_not_attached() -> None:
    """TT-25. With no stack left, `call` and `submit` raise, and the tree is as before."""

    def down(left: int, act: Callable[[], object]) -> object:
        return act() if not left else down(left - 1, act)

    loop = asyncio.get_running_loop()
    told, before = loop.get_exception_handler(), sys.getrecursionlimit()
    loop.set_exception_handler(lambda *_: None)  # it would tell of tasks that came to nothing
    async with Commander() as commander:
        sys.setrecursionlimit(400)
        failed = 0
        try:
            for left in range(250, 400):
                for act in (lambda: call(nothing()), lambda: submit(Alike(1))):
                    try:
                        down(left, act)
                    except RecursionError:
                        failed += 1
        finally:
            sys.setrecursionlimit(before)
            gc.collect()
            loop.set_exception_handler(told)
        assert failed
        async with asyncio.timeout(10):
            for node in commander.children:
                await node
        assert all(node.state is NodeState.COMPLETED for node in commander.children)
        assert await asyncio.wait_for(submit(Alike(2)), 10) == 2


async def test_an_isolating_commander_holds_no_failed_node() -> None:
    """TT-18, TT-25. Open for years, with failures that nobody asks about."""
    held: list[weakref.ref[Any]] = []
    async with Commander(isolate=True, keep="none"):
        for _ in range(100):
            node = call(fails(ValueError("x")))
            held.append(weakref.ref(node))
            await steps(3)
        del node
        gc.collect()
        assert sum(each() is not None for each in held) <= 10


# ---- threads


async def test_work_given_from_a_foreign_thread_is_refused_by_name() -> None:
    """TT-11, TT-20. `submit` and `call` are for the loop's own thread."""
    async with Commander() as commander:
        for act in (lambda: submit(Alike(1), parent=commander), lambda: call(nothing(), parent=commander)):
            with pytest.raises(OtherLoopError, match="submit_threadsafe"):
                await asyncio.to_thread(act)
        assert commander.children == ()


async def test_a_cancelled_future_tells_those_who_wait_for_it() -> None:
    """TT-11. As `concurrent.futures.wait` expects it, and as asyncio's own do."""
    async with Commander() as commander:
        future = commander.call_threadsafe(for_ever())
        await steps()
        assert future.cancel()
        done, _ = await asyncio.to_thread(wait, [future], 10)
        assert done == {future}


async def test_a_job_sent_to_another_thread_holds_no_slot() -> None:
    """TT-11, TT-12. Both Commanders have one slot, and each sends to the other."""
    ready, stop = threading.Event(), threading.Event()
    there: list[Commander] = []

    async def other() -> None:
        async with Commander(max_handlers=1) as commander:
            there.append(commander)
            ready.set()
            await asyncio.to_thread(stop.wait, 20)

    thread = threading.Thread(target=lambda: asyncio.run(other()))
    thread.start()
    try:
        assert await asyncio.to_thread(ready.wait, 10)

        async def back() -> Any:
            return do(lambda: _await(do(_seven)))

        async def forth() -> Any:
            return send(Do(back, "back"), here)

        async def body() -> Any:
            return send(Do(forth, "forth"), there[0])

        here = Commander(max_handlers=1)
        assert await asyncio.wait_for(here.run(Do(body)), 10) == 7
    finally:
        stop.set()
        thread.join(10)


async def _seven() -> int:
    return 7
