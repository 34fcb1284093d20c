"""Limits: how many handlers run at one time, priorities of Jobs, and how long a node may take."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, do, for_ever, steps

from casework.tasktree import (
    AlreadyAttachedError,
    Commander,
    Job,
    NodeFailedError,
    NodeState,
    NodeTerminatedError,
    OptionError,
    TimeLimitError,
    call,
    current_node,
    handler,
    submit,
)


class ManualClock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> "ManualClock.Handle":
        self.calls.append((self.now + delay, callback, args))
        return self.Handle(self, self.calls[-1])

    class Handle:
        def __init__(self, clock: "ManualClock", call: Any) -> None:
            self.clock, self.call = clock, call

        def cancel(self) -> None:
            if self.call in self.clock.calls:
                self.clock.calls.remove(self.call)

    def go(self, seconds: float) -> None:
        self.now += seconds
        due = [call for call in self.calls if call[0] <= self.now]
        for made in due:
            self.calls.remove(made)
            made[1](*made[2])


class Busy:
    """How many bodies run at one time, and how many did at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    @handler
    async def work(self, turns: int = 3) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await steps(turns)
        self.now -= 1


@pytest.mark.parametrize("most", [1, 2, 7])
async def test_no_more_handlers_run_than_may(most: int) -> None:
    """TT-12. A limit on concurrent handlers, per Commander."""
    busy = Busy()

    async def body() -> None:
        for number in range(30):
            call(busy.work(number % 4))

    await Commander(max_handlers=most).run(Do(body))
    assert busy.most == most


async def test_handlers_that_wait_their_turn_begin_in_order_and_say_so() -> None:
    """TT-12. A wait for a limit is visible in the node's data; who was called first begins first."""
    began: list[int] = []

    @handler
    async def work(number: int) -> None:
        began.append(number)
        await steps()

    async def body() -> list[Any]:
        nodes = [call(work(number)) for number in range(4)]
        await steps(2)
        return [node.data.get("waits_for") for node in nodes]

    commander = Commander(max_handlers=1)
    assert await commander.run(Do(body)) == [None, *["a handler slot"] * 3]
    assert began == [0, 1, 2, 3]
    assert [node.data for node in commander.children[0].children] == [{}] * 4


@pytest.mark.parametrize("most", [1, 2])
async def test_slots_held_by_parents_that_wait_are_given_back(most: int) -> None:
    """TT-12. A handler that waits for another node gives its slot back, so nesting never deadlocks."""

    @handler
    async def nest(levels: int) -> int:
        if not levels:
            return 0
        return 1 + sum(await asyncio.gather(call(nest(levels - 1)), call(nest(0))))

    async def body() -> Any:
        return nest(60)

    assert await asyncio.wait_for(Commander(max_handlers=most).run(Do(body)), 10) == 60


async def test_who_comes_back_goes_on_before_others_begin() -> None:
    """TT-12. A handler that has its answer has the next slot, ahead of those that have not begun."""
    order: list[str] = []

    @handler
    async def parent() -> None:
        await submit(Do(steps), parent=current_node().commander)
        order.append("goes on")

    @handler
    async def later() -> None:
        order.append("begins")
        await steps(30)

    async def body() -> None:
        call(parent())
        for _ in range(3):
            call(later())

    await Commander(max_handlers=1).run(Do(body))
    assert order == ["begins", "goes on", "begins", "begins"]


async def test_a_handler_that_continues_a_job_counts() -> None:
    """TT-8, TT-12. Jobs whose bodies return handler calls run no more than the limit of them."""
    busy = Busy()

    async def body() -> Any:
        return busy.work()

    await Commander(max_handlers=2).run(*[Do(body) for _ in range(9)])
    assert busy.most == 2


async def test_termination_reaches_those_that_wait_for_a_slot() -> None:
    """TT-12, TT-19. Not begun, or about to go on: they end, and their slots serve others."""

    async def body() -> list[NodeState]:
        held = call(for_ever())
        waiting = call(for_ever())
        back = call(do(lambda: _await(held)))
        await steps()
        for node in (waiting, back, held):
            await node.terminate()
        assert await call(do(_one)) == 1
        return [node.state for node in (held, waiting, back)]

    async def _await(node: Any) -> None:
        await node

    async def _one() -> int:
        return 1

    found = await asyncio.wait_for(Commander(max_handlers=1, isolate=True).run(Do(body).isolate()), 10)
    assert found == [NodeState.TERMINATED] * 3


async def test_jobs_of_higher_priority_have_their_turn_first() -> None:
    """TT-12. FIFO by default; the higher priority sooner, and FIFO among equals."""
    order: list[str] = []

    def job(name: str) -> Job:
        async def body() -> None:
            order.append(name)

        return Do(body)

    async def first() -> None:
        for name, priority in (("a", 0), ("low", -1), ("b", 0), ("high", 5), ("higher", 7), ("high2", 5)):
            submit(job(name), parent=current_node().commander, priority=priority)

    await Commander().run(Do(first))
    assert order == ["higher", "high", "high2", "a", "b", "low"]


async def test_a_node_that_takes_too_long_fails_with_all_below_it() -> None:
    """TT-12. A time limit per node, by an injected clock: EXCEPTION with a named error; what is below is terminated."""
    clock = ManualClock()

    async def body() -> None:
        node = call(do(parent).named("slow").within(5))
        await steps()
        clock.go(4.9)
        await steps()
        assert not node.state.final
        clock.go(0.2)
        with pytest.raises(TimeLimitError, match=r"slow\.1' did not end within 5 s"):
            await node
        assert node.state is NodeState.EXCEPTION
        assert [child.state for child in node.children] == [NodeState.TERMINATED] * 2
        assert node.ended == pytest.approx(5.1)

    async def parent() -> None:
        call(for_ever())
        await call(for_ever())

    await asyncio.wait_for(Commander(clock=clock).run(Do(body)), 10)
    assert not clock.calls


async def test_a_time_limit_counts_for_what_is_below_after_the_body() -> None:
    """TT-4, TT-12. The body has returned and its handlers still run: the node is as late as they are."""
    clock = ManualClock()

    async def parent() -> None:
        call(for_ever())

    async def watch() -> None:
        await steps()
        clock.go(1)

    with pytest.raises(NodeFailedError) as failed:
        await asyncio.wait_for(Commander(clock=clock).run(Do(parent, "slow").within(1), Do(watch)), 10)
    assert failed.value.path == "slow.1"
    assert isinstance(failed.value.__cause__, TimeLimitError)
    assert isinstance(failed.value.__cause__, TimeoutError)


async def test_a_node_in_time_leaves_no_timer_behind() -> None:
    """TT-12. Also the time limit of a handler that continues a Job."""
    clock = ManualClock()

    async def quick() -> int:
        await steps()
        return 3

    async def goes_on() -> Any:
        return do(quick).within(9)

    async def late() -> Any:
        return do(asyncio.Event().wait).within(9)

    assert await Commander(clock=clock).run(Do(quick).within(9)) == 3
    assert await Commander(clock=clock).run(Do(goes_on)) == 3
    assert not clock.calls
    running = asyncio.ensure_future(Commander(clock=clock).run(Do(late)))
    await steps()
    clock.go(10)
    with pytest.raises(NodeFailedError, match="TimeLimitError"):
        await asyncio.wait_for(running, 10)


async def test_a_limit_on_the_whole_run() -> None:
    """TT-12. The Commander is a node, too."""
    clock = ManualClock()
    running = asyncio.ensure_future(Commander(clock=clock).within(2).run(Do(asyncio.Event().wait)))
    await steps()
    clock.go(2)
    with pytest.raises(TimeLimitError, match="the Commander did not end within 2 s"):
        await asyncio.wait_for(running, 10)


async def test_a_body_that_does_not_let_itself_be_cancelled_still_fails() -> None:
    """TT-12. It ends late, and its result does not count."""

    async def stubborn() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await steps()
        return "too late"

    commander = Commander()
    with pytest.raises(NodeFailedError, match="TimeLimitError"):
        await asyncio.wait_for(commander.run(Do(stubborn).within(0.01)), 10)
    assert commander.children[0].state is NodeState.EXCEPTION


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "5", None, True])
def test_a_limit_must_be_one(bad: Any) -> None:
    """TT-20. Refused where it is given, by name, with value and remedy."""
    with pytest.raises(OptionError, match="above zero"):
        Do(steps).within(bad)
    if bad is not None:
        with pytest.raises(OptionError, match=r"max_handlers=.*whole number from 1"):
            Commander(max_handlers=bad)
    with pytest.raises(OptionError, match="keep="):
        Commander(keep=bad)


@pytest.mark.parametrize("bad", [1.5, "high", None, True])
async def test_a_priority_is_a_whole_number(bad: Any) -> None:
    """TT-20. The Job that was refused can be submitted again."""
    async with Commander() as commander:
        job = Do(steps)
        if bad is not None:
            with pytest.raises(OptionError, match="whole number"):
                submit(job, priority=bad)
        await submit(job, parent=commander)


async def test_limits_are_set_before_a_node_has_its_place() -> None:
    """TT-20."""
    async with Commander() as commander:
        job = submit(Do(steps), parent=commander)
        with pytest.raises(AlreadyAttachedError):
            job.within(1)
        with pytest.raises(AlreadyAttachedError):
            job.isolate()
        with pytest.raises(AlreadyAttachedError):
            job.reopen(1)
        await job


async def test_time_limit_of_a_job_that_never_had_its_turn_does_not_count() -> None:
    """TT-12. The time begins with the body; a Job that is dropped before has none."""

    async def body() -> None:
        submit(Do(steps).within(0.001))
        await asyncio.sleep(0.01)
        current_node().commander.exit("done")

    commander = Commander()
    assert await commander.run(Do(body)) == "done"
    assert commander.dropped == 1
    with pytest.raises(NodeTerminatedError):
        await commander.children[0].children[0]
