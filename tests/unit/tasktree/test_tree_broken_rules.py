"""Objects that break every rule, errors beside others, loops that end: a run has an end, and says what it can."""

import asyncio
import gc
import sys
import weakref
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, do, fails, for_ever, steps

from casework.tasktree import (
    Commander,
    Job,
    NodeFailedError,
    NodeState,
    OtherLoopError,
    ReservedNameError,
    Stage,
    call,
    current_node,
    handler,
    submit,
)


async def ends(commander: Commander, *jobs: Job) -> BaseException:
    """The error that a run ends by, in ten seconds at most."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever it is
        await asyncio.wait_for(commander.run(*jobs), 10)
    return caught.value


class Unnameable(Exception):
    """Raises where it is looked at."""

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]  # that is what is odd
        raise RuntimeError("no cause is told")


class Unmovable(Exception):
    """Does not give its traceback away."""

    def with_traceback(self, _tb: Any) -> Any:
        raise RuntimeError("not with me")


@pytest.mark.parametrize("error", [Unnameable("a"), Unmovable("b")])
@pytest.mark.parametrize("ended", [False, True])
async def test_an_error_that_is_none_as_others_are_ends_the_run(error: Exception, ended: bool) -> None:
    """TT-16, TT-18. Raised by a body, or by one that is terminated: no hang."""

    async def bad() -> None:
        try:
            await asyncio.sleep(0 if not ended else 30)
        finally:
            raise error

    async def body() -> None:
        node = call(do(bad))
        await steps()
        await node.terminate()

    commander = Commander(on_callback_error=lambda *_: None)
    try:
        await asyncio.wait_for(commander.run(Do(body)), 10)
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001  # it may fail, but not hang
        assert commander.state is not NodeState.ACTIVE


def test_a_name_of_the_tree_does_not_come_in_by_a_mixin() -> None:
    """TT-20."""

    class Mixin:
        exception = None

    with pytest.raises(ReservedNameError, match="exception"):

        class Mixed(Mixin, Job):
            async def task(self) -> None:
                return None


async def test_what_a_job_calls_its_own_things_does_not_reach_the_tree() -> None:
    """TT-18. Also names that a library might use for methods."""

    class Own(Job):
        def __init__(self) -> None:
            for name in ("origin", "outcome", "rarely", "drive", "doom", "launch", "slot", "prepare"):
                setattr(self, f"_{name}", "mine")

        async def task(self) -> None:
            raise ValueError("declined")

    error = await ends(Commander(), Own())
    assert isinstance(error, NodeFailedError)
    assert error.path == "Own.1"


async def test_errors_beside_the_one_that_counts_are_noted() -> None:
    """TT-18. Nothing is swallowed: of siblings, of a body that fails itself, of one that is terminated."""

    async def siblings() -> None:
        call(fails(ValueError("first")))
        call(fails(ValueError("second")))
        await steps()

    async def both() -> None:
        call(fails(ValueError("of the child")))
        await steps()
        raise KeyError("of the body")

    async def terminated() -> None:
        call(fails(ValueError("before the end")))
        await asyncio.Event().wait()

    async def terminates() -> None:
        node = call(do(terminated))
        await steps()
        await node.terminate()

    for body, note in ((siblings, "second"), (both, "of the child"), (terminates, "before the end")):
        commander = Commander(isolate=True)
        await commander.run(Do(body))
        assert note in commander.render()


async def test_a_failed_node_gives_work_to_others_from_its_callbacks() -> None:
    """TT-13, TT-19. Only what was terminated gives none; a repair is queued where somebody lives."""
    repaired: list[str] = []

    async def repair() -> None:
        repaired.append("done")

    def mend(node: Any) -> None:
        submit(Do(repair, "repair"), parent=node.commander)

    commander = Commander(isolate=True)
    await commander.run(Do(lambda: _raise(ValueError("x"))).on(Stage.AT_EXCEPTION, mend, with_node=True))
    assert repaired == ["done"]


async def _raise(error: Exception) -> None:
    raise error


async def test_jobs_ended_before_their_turn_are_let_go() -> None:
    """TT-25. Also behind a body that lasts: the queue does not hold them."""
    held: list[weakref.ref[Any]] = []

    @handler
    async def churn(commander: Commander) -> None:
        for number in range(300):
            job = Do(steps)
            held.append(weakref.ref(job))
            submit(job, parent=commander, priority=number % 2)
            await job.terminate()
        del job

    async def body() -> None:
        await call(churn(current_node().commander))
        gc.collect()
        assert sum(each() is not None for each in held) < 100

    await asyncio.wait_for(Commander(keep="none").run(Do(body)), 10)


async def test_an_open_commander_does_not_gather_what_failed() -> None:
    """TT-25. The first error counts in the end; thousands of others are not kept for it."""
    held: list[weakref.ref[Any]] = []

    async def opened() -> None:
        async with Commander(keep="none"):
            for _ in range(400):
                held.append(weakref.ref(call(fails(ValueError("x")))))
                await steps(3)
            gc.collect()
            assert sum(each() is not None for each in held) < 150

    with pytest.raises(NodeFailedError):
        await opened()


async def test_ending_from_a_foreign_thread_is_refused_before_anything_is_done() -> None:
    """TT-11, TT-20. `exit` and `terminate` are for the loop's own thread; `exit_threadsafe` is for others."""
    async with Commander() as commander:
        node = call(for_ever())
        await steps()
        with pytest.raises(OtherLoopError):
            await asyncio.to_thread(commander.exit)
        with pytest.raises(OtherLoopError):
            await asyncio.to_thread(lambda: asyncio.run(_end(node)))
        assert not node.terminating
        await node.terminate()


async def _end(node: Any) -> None:
    await node.terminate()


def test_a_commander_whose_loop_is_gone_can_run_again() -> None:
    """TT-9. The loop was closed in the middle of a run."""
    commander = Commander()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(commander.__aenter__())
    loop.close()
    assert commander.run_sync(Do(_seven)) == 7


async def _seven() -> int:
    return 7


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the loop has no eager tasks")
async def test_eager_tasks_change_nothing() -> None:
    """TT-5, TT-25. Bodies take their turn, and a long queue ends on a flat stack."""
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    assert await asyncio.wait_for(Commander().run(Do(_seven), *[Do(_seven) for _ in range(3_000)]), 20) == 7
