"""How a run begins and ends: results, exit, an open Commander, one after the other, one beside the other."""

import asyncio
import contextvars
from typing import Any

import pytest

from casework.tasktree import (
    AlreadyAttachedError,
    Commander,
    CommanderBusyError,
    CommanderNotRunningError,
    Job,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    NotAJobError,
    Stage,
    TreeError,
    call,
    current_node,
    exit_run,
    submit,
)

from .bodies import Do, do, fails, for_ever, nothing, steps


async def returns_one() -> int:
    return 1


def test_a_script_runs_without_a_loop() -> None:
    """TT-9. `run_sync` is for scripts."""
    assert Commander().run_sync(Do(returns_one)) == 1


async def test_the_result_is_that_of_the_first_job() -> None:
    """TT-9. The first Job's result counts, not that of the first to end; no Job at all gives None."""

    async def late() -> str:
        await nothing()
        return "first"

    async def body() -> Any:
        return do(late)

    assert await Commander().run(Do(body), Do(returns_one)) == "first"
    assert await Commander().run() is None


async def test_no_result_leaks_into_a_later_run() -> None:
    """TT-9. Not the result, not the error, not an exit; and no path is given twice."""
    commander = Commander()

    async def leaves() -> None:
        exit_run("left")

    async def breaks() -> None:
        raise ValueError("broken")

    async def silent() -> None: ...

    assert await commander.run(Do(leaves)) == "left"
    assert await commander.run() is None
    with pytest.raises(NodeFailedError, match="broken"):
        await commander.run(Do(breaks), Do(silent))
    last = Do(silent)
    assert await commander.run(last) is None
    assert commander.exception is None
    assert commander.state is NodeState.COMPLETED
    assert last.path == "Do.4"
    assert commander.dropped == 0


async def test_a_second_run_beside_the_first_is_refused() -> None:
    """TT-9. A second concurrent run is a clear error and harms neither the first nor the Job."""
    commander = Commander()
    other = Do(returns_one)

    async def body() -> str:
        with pytest.raises(CommanderBusyError):
            await commander.run(other)
        return "unharmed"

    assert await commander.run(Do(body)) == "unharmed"
    assert other.state is NodeState.PENDING


async def test_nothing_starts_if_one_of_the_jobs_is_wrong() -> None:
    commander = Commander()
    job = Do(returns_one)
    for wrong, error in ((object(), NotAJobError), (job, AlreadyAttachedError), (Do, NotAJobError)):
        with pytest.raises(error):
            await commander.run(job, wrong)  # type: ignore[arg-type]
    assert commander.children == ()
    assert await commander.run(job) == 1


async def test_an_open_commander_takes_jobs_until_closed() -> None:
    """TT-9. It waits at the end for what still runs, and takes nothing afterwards."""
    async with Commander() as commander:
        first = submit(Do(returns_one))
        await first
        await steps()
        call(nothing())
        late = submit(Do(returns_one), parent=commander)
    assert commander.state is NodeState.COMPLETED
    assert late.state is NodeState.COMPLETED
    assert commander.result == 1
    with pytest.raises(CommanderNotRunningError):
        submit(Do(returns_one), parent=commander)
    with pytest.raises(TreeError):
        current_node()


async def test_an_open_commander_gives_its_error_at_the_end() -> None:
    """TT-18. The block is the Commander's body; an error that it did not await reaches it when it ends."""
    with pytest.raises(NodeFailedError) as caught:  # noqa: PT012 - the block is what is tested
        async with Commander():
            call(for_ever())
            call(fails(ValueError("late")))
            await steps()
    assert caught.value.path == "fails.1"


async def test_an_error_awaited_in_the_block_is_handled_there() -> None:
    """TT-18."""
    async with Commander() as commander:
        with pytest.raises(ValueError, match="handled"):
            await call(fails(ValueError("handled")))
    assert commander.state is NodeState.COMPLETED


async def test_an_error_of_the_block_ends_the_tree() -> None:
    commander = Commander()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
        async with commander:
            node = call(for_ever())
            await steps()
            raise ZeroDivisionError
    assert node.state is NodeState.TERMINATED
    assert commander.state is NodeState.EXCEPTION


async def test_exit_ends_in_order() -> None:
    """TT-10. No new nodes, queued Jobs dropped, running handlers cancelled, end callbacks run."""
    seen: list[tuple[str, str]] = []
    refused: list[type[Exception]] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                call(nothing(), parent=current_node().commander)
            except TreeError as error:
                refused.append(type(error))

    async def child() -> str:
        exit_run("result")
        exit_run("ignored")
        with pytest.raises(TreeError):
            call(nothing())
        with pytest.raises(TreeError):
            submit(Do(returns_one), parent=commander)
        return "mine"

    async def body() -> None:
        call(for_ever())
        call(do(tidy))
        submit(Do(returns_one, "queued").on(Stage.AT_TERMINATE, seen.append, ("queued", "dropped")))
        call(do(child).named("leaver"))
        call(nothing().named("unstarted"))

    commander = Commander(listener=lambda node, stage: seen.append((node.path, stage)))
    assert await commander.run(Do(body, "top")) == "result"
    states = {node.name: node.state for node in commander.children[0].children}
    assert states == {
        "for_ever": NodeState.TERMINATED,
        "do": NodeState.TERMINATED,
        "queued": NodeState.TERMINATED,
        "leaver": NodeState.COMPLETED,
        "unstarted": NodeState.TERMINATED,
    }
    assert refused == [NodeTerminatedError]
    assert commander.dropped == 1
    assert ("queued", "dropped") in seen
    assert seen[-2:] == [("top.1", Stage.AT_JOB_END), ("", Stage.AT_COMMANDER_END)]
    assert commander.state is NodeState.COMPLETED


async def test_exit_ends_a_caller_that_goes_on_waiting() -> None:
    """TT-10. The caller is cancelled at its next wait, so exit never hangs on it."""

    async def body() -> None:
        exit_run(3)
        await asyncio.Event().wait()

    commander = Commander()
    assert await commander.run(Do(body)) == 3
    assert commander.children[0].state is NodeState.TERMINATED


async def test_exit_of_a_job_that_would_go_on_as_a_handler() -> None:
    """TT-10. No new work starts: the handler is not begun."""
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async def body() -> Any:
        exit_run(None)
        return do(work)

    job = Do(body)
    assert await Commander().run(job) is None
    assert begun == []
    assert job.state is NodeState.TERMINATED


async def test_exit_from_outside_a_node() -> None:
    """TT-10. Any code that has the Commander can end the run; one that does not run refuses."""
    commander = Commander()
    with pytest.raises(CommanderNotRunningError):
        commander.exit(1)
    with pytest.raises(TreeError):
        exit_run(1)

    async def body() -> None:
        await for_ever()

    running = asyncio.ensure_future(commander.run(Do(body)))
    await steps()
    commander.exit("from outside")
    assert await running == "from outside"


async def test_exit_in_a_callback() -> None:
    """TT-10. Callbacks and the listener may end the run, too."""

    def listener(node: Any, stage: Stage) -> None:
        if stage is Stage.AT_HANDLER_END and node.name == "nothing":
            commander.exit("seen enough")

    async def body() -> None:
        call(nothing())
        await for_ever()

    commander = Commander(listener=listener)
    assert await commander.run(Do(body), Do(returns_one)) == "seen enough"


async def test_an_exit_does_not_hide_an_error_that_reached_the_root() -> None:
    """TT-18. Nothing is swallowed."""

    async def body() -> None:
        call(fails(ValueError("mine")))
        await steps()
        exit_run("result")

    with pytest.raises(NodeFailedError, match="mine"):
        await Commander().run(Do(body))


async def test_a_run_inside_a_run() -> None:
    """A Commander can be run in a body; its tree is its own."""

    async def inner() -> str:
        return current_node().path

    async def body() -> Any:
        return await Commander().run(Do(inner, "inner")), current_node().path

    assert await Commander().run(Do(body, "outer")) == ("inner.1", "outer.1")


async def test_many_commanders_share_a_loop() -> None:
    async def body() -> str:
        await nothing()
        return current_node().path

    results = await asyncio.gather(*(Commander().run(Do(body)) for _ in range(20)))
    assert results == ["Do.1"] * 20


def test_a_tree_that_is_dropped_in_the_middle_touches_no_other() -> None:
    """TT-19. A coroutine that held a Commander open is thrown away: the code that runs just then keeps its node."""

    class Waits(Job):
        async def task(self) -> None:
            await asyncio.Event().wait()

    async def abandoned() -> None:
        async with Commander():
            submit(Waits())
            await asyncio.Event().wait()

    class Drops(Job):
        async def task(self) -> str:
            held = abandoned()
            contextvars.copy_context().run(held.send, None)
            held.close()
            return current_node().name

    assert Commander().run_sync(Drops()) == "Drops"
