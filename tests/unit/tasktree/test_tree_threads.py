"""Work from other threads, and work that another Commander does."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, do, for_ever, steps

from casework.tasktree import (
    Commander,
    CommanderNotRunningError,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    NotACommanderError,
    NotAHandlerError,
    NotAJobError,
    OptionError,
    OtherLoopError,
    Stage,
    ThreadsRefusedError,
    call,
    current_node,
    handler,
    send,
    submit,
)


@pytest.fixture
def elsewhere() -> Iterator[Commander]:
    """An open Commander in a loop and a thread of its own."""
    ready: Future[tuple[Commander, asyncio.Event, asyncio.AbstractEventLoop]] = Future()

    async def main() -> None:
        closing = asyncio.Event()
        async with Commander(isolate=True) as commander:
            ready.set_result((commander, closing, asyncio.get_running_loop()))
            await closing.wait()
            commander.exit()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    commander, closing, loop = ready.result(10)
    yield commander
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(closing.set)
    thread.join(10)
    assert not thread.is_alive()


async def where() -> str:
    """The thread that runs this."""
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fail() -> None:
    raise ValueError("no such applicant")


def test_work_from_another_thread(elsewhere: Commander) -> None:
    """TT-11. The Future gets the result; the nodes are children of the Commander, or of a named parent."""
    name = elsewhere.submit_threadsafe(Do(where, "job")).result(10)
    assert name == elsewhere.call_threadsafe(do(where)).result(10) != threading.current_thread().name
    parent = do(asyncio.Event().wait).named("parent")
    waiting = elsewhere.call_threadsafe(parent)
    below = Do(where, "below")
    assert elsewhere.submit_threadsafe(below, parent, priority=3).result(10) == name
    assert [node.path for node in elsewhere.children] == ["job.1", "do.1", "parent.1"]
    assert below.path == "parent.1/below.1"
    assert waiting.cancel()
    with pytest.raises(CancelledError):
        waiting.result(10)


def test_errors_come_back_to_the_thread(elsewhere: Commander) -> None:
    """TT-11, TT-18. The error itself; and since a thread is no awaiter in the tree, it goes up as well."""
    for future in (elsewhere.submit_threadsafe(Do(fail)), elsewhere.call_threadsafe(do(fail))):
        with pytest.raises(ValueError, match="no such applicant"):
            future.result(10)

    async def main() -> Future[Any]:
        async with Commander() as commander:
            return await asyncio.to_thread(commander.submit_threadsafe, Do(fail, "bad"))

    with pytest.raises(NodeFailedError, match=r"bad\.1"):
        asyncio.run(main())


def test_cancelling_the_future_terminates_the_node(elsewhere: Commander) -> None:
    """TT-11, TT-19."""
    began, ended = threading.Event(), threading.Event()
    node = for_ever().on(Stage.AT_HANDLER_START, began.set).on(Stage.AT_TERMINATE, ended.set)
    future = elsewhere.call_threadsafe(node)
    assert began.wait(10)
    assert future.cancel()
    assert ended.wait(10)
    assert node.state is NodeState.TERMINATED


def test_a_commander_that_does_not_run_raises_at_once() -> None:
    """TT-11. Before, after, and in a loop that was closed under it."""
    commander = Commander()
    for _ in range(2):
        with pytest.raises(CommanderNotRunningError):
            commander.submit_threadsafe(Do(steps))
        with pytest.raises(CommanderNotRunningError):
            commander.call_threadsafe(for_ever())
        commander.run_sync(Do(steps))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(commander.__aenter__())
    loop.close()
    with pytest.raises(CommanderNotRunningError, match="loop is closed"):
        commander.submit_threadsafe(Do(steps))


async def test_misuse_is_named_in_the_calling_thread() -> None:
    """TT-11, TT-20."""
    async with Commander() as commander:
        with pytest.raises(NotAJobError):
            commander.submit_threadsafe(for_ever())  # type: ignore[type-var]  # that is the misuse
        with pytest.raises(NotAHandlerError):
            commander.call_threadsafe(Do(steps))  # type: ignore[type-var]  # that is the misuse
        with pytest.raises(OptionError):
            commander.submit_threadsafe(Do(steps), priority="high")  # type: ignore[arg-type]  # that is the misuse
        job = Do(steps)
        await asyncio.wrap_future(commander.submit_threadsafe(job))
        with pytest.raises(Exception, match="used before"):
            await asyncio.wrap_future(commander.submit_threadsafe(job))


def test_the_end_of_a_run_from_another_thread() -> None:
    """TT-10, TT-11. As `exit` from inside: what runs is cancelled, what waits is dropped, and the result is given."""
    commander = Commander()
    answer: Future[Any] = Future()

    def end() -> None:
        commander.exit_threadsafe("enough")

    job = Do(asyncio.Event().wait).on(Stage.AT_JOB_START, lambda: threading.Thread(target=end).start())
    threading.Thread(target=lambda: answer.set_result(commander.run_sync(job, Do(steps)))).start()
    assert answer.result(10) == "enough"
    assert commander.dropped == 1
    with pytest.raises(CommanderNotRunningError):
        commander.exit_threadsafe()


def test_many_threads_at_once_and_an_end_in_between() -> None:
    """TT-11. Whatever was left at the door is answered: by a result, or by the error that says that the run is over."""
    answers: list[Any] = []

    def push(commander: Commander, number: int) -> None:
        for _ in range(200):
            try:
                future = commander.submit_threadsafe(Do(where)) if number % 2 else commander.call_threadsafe(do(where))
            except CommanderNotRunningError as error:
                answers.append(error)
                return
            answers.append(future)

    async def main() -> None:
        async with Commander(keep="none") as commander:
            threads = [threading.Thread(target=push, args=(commander, number)) for number in range(8)]
            for thread in threads:
                thread.start()
            await asyncio.sleep(0.02)
            commander.exit()
        for thread in threads:
            await asyncio.to_thread(thread.join, 10)

    asyncio.run(asyncio.wait_for(main(), 30))
    errors = [answer.exception(10) for answer in answers if isinstance(answer, Future)]
    assert {type(error) for error in errors} <= {type(None), CommanderNotRunningError, NodeTerminatedError}
    assert None in errors


async def test_a_node_of_another_thread_is_not_awaited_here(elsewhere: Commander) -> None:
    """TT-11, TT-20. By name, from inside a tree and from outside; its Future is what there is to wait for."""
    node = for_ever()
    future = elsewhere.call_threadsafe(node)
    while elsewhere.children == ():
        await asyncio.to_thread(elsewhere.call_threadsafe(do(steps)).result, 10)
    with pytest.raises(OtherLoopError, match="another thread"):
        await node

    async def body() -> None:
        with pytest.raises(OtherLoopError):
            await node

    await Commander().run(Do(body))
    future.cancel()


async def test_a_loop_without_threads_refuses_by_name() -> None:
    """TT-11. As a durable workflow's loop, which does not have the call by which threads reach it."""

    class Bare(asyncio.SelectorEventLoop):
        call_soon_threadsafe = asyncio.AbstractEventLoop.call_soon_threadsafe

    async def main() -> None:
        async with Commander() as commander:
            with pytest.raises(ThreadsRefusedError, match="takes no such calls"):
                commander.submit_threadsafe(Do(steps))

    loop = Bare()
    try:
        await asyncio.to_thread(loop.run_until_complete, main())
    finally:
        loop.close()


# ---- another Commander


async def test_a_child_that_another_commander_does() -> None:
    """TT-11. The first parent completes when it ends; it has a place in both trees; its result comes back."""
    go_on = asyncio.Event()

    async def far() -> str:
        call(do(go_on.wait))
        return "done there"

    async def body() -> Any:
        return send(Do(far, "far"), other)

    async with Commander() as other:
        first = Commander()
        running = asyncio.ensure_future(first.run(Do(body, "job")))
        await steps()
        assert first.children[0].state is NodeState.ACTIVE
        go_on.set()
        assert await asyncio.wait_for(running, 10) == "done there"
        assert first.children[0].children[0].path == "job.1/far.1"
        assert other.children[0].path == "far.1"


async def test_its_error_is_the_senders_and_not_the_other_trees() -> None:
    """TT-11, TT-18. Who sent it receives it; the other tree goes on."""

    async def body() -> str:
        with pytest.raises(ValueError, match="no such applicant"):
            await send(Do(fail), other)
        return "went on"

    async with Commander() as other:
        assert await Commander().run(Do(body)) == "went on"
    assert other.state is NodeState.COMPLETED


async def test_termination_goes_over_to_the_other_tree() -> None:
    """TT-11, TT-19. The child here has ended only when the Job there has."""
    job = Do(asyncio.Event().wait, "far").on(Stage.AT_TERMINATE, steps)

    async def body() -> None:
        node = send(job, other)
        await steps()
        await node.terminate()
        assert node.state is job.state is NodeState.TERMINATED

    async with Commander() as other:
        await asyncio.wait_for(Commander().run(Do(body)), 10)


async def test_a_child_done_in_another_thread(elsewhere: Commander) -> None:
    """TT-11. As in the same loop: result, error, and termination."""
    began = threading.Event()
    job = Do(asyncio.Event().wait, "ever").on(Stage.AT_JOB_START, began.set)

    async def body() -> None:
        assert await send(Do(where), elsewhere) != threading.current_thread().name
        with pytest.raises(ValueError, match="no such applicant"):
            await send(Do(fail), elsewhere)
        node = send(job, elsewhere)
        assert await asyncio.to_thread(began.wait, 10)
        await node.terminate()
        assert node.state is job.state is NodeState.TERMINATED

    await asyncio.wait_for(Commander().run(Do(body)), 10)


async def test_an_end_of_the_other_commander_reaches_the_sender() -> None:
    """TT-10, TT-11. Its Job is terminated there, and the child here has no result."""

    @handler
    async def leave(other: Commander) -> None:
        await steps()
        other.exit()

    async def body() -> None:
        call(leave(other))
        with pytest.raises(NodeTerminatedError):
            await send(Do(asyncio.Event().wait), other)
        with pytest.raises(NodeTerminatedError):
            send(Do(steps), other)

    async with Commander() as other:
        await asyncio.wait_for(Commander().run(Do(body)), 10)


async def test_only_a_commander_that_runs_takes_jobs() -> None:
    """TT-11, TT-20. Refused before anything is attached, so that the Job can go elsewhere."""

    async def body() -> None:
        job = Do(steps)
        with pytest.raises(CommanderNotRunningError):
            send(job, Commander())
        for no_commander in (current_node(), None, "other"):
            with pytest.raises(NotACommanderError):
                send(job, no_commander)  # type: ignore[arg-type]  # that is the misuse
        with pytest.raises(NotAJobError):
            send(for_ever(), current_node().commander)  # type: ignore[arg-type]  # that is the misuse
        submit(job)
        assert not current_node().children[0].state.final

    await Commander().run(Do(body))
