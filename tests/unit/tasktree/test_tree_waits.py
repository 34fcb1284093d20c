"""Waits that could never end: each is a named error where it would begin, and no others are."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, do, nothing, steps

from casework.tasktree import Commander, EndlessWaitError, HandlerNode, Job, call, current_node, handler, submit, waits


async def ended_by(body: Callable[[], Any], **options: Any) -> BaseException | None:
    """The error that a run of one Job with this body ends by."""
    try:
        await asyncio.wait_for(Commander(**options).run(Do(body, "first")), 10)
    except Exception as error:  # noqa: BLE001  # whatever it is
        return error.__cause__ or error
    return None


async def test_a_job_body_cannot_await_a_job_behind_it() -> None:
    """TT-20. Directly, and through gather; the message says what to do."""

    async def direct() -> None:
        await submit(Do(steps, "second"))

    async def gathered() -> None:
        await asyncio.gather(*[submit(Do(steps)) for _ in range(3)])

    for body in (direct, gathered):
        error = await ended_by(body)
        assert isinstance(error, EndlessWaitError)
        assert "Return a handler call" in str(error)


@pytest.mark.parametrize("levels", [1, 2, 5])
async def test_nor_through_handlers(levels: int) -> None:
    """TT-20. The handler that is awaited awaits such a Job, or submits it as its own child, at any depth."""

    @handler
    async def awaits(left: int) -> None:
        if left > 1:
            await call(awaits(left - 1))
        else:
            await submit(Do(steps), parent=current_node().commander)

    @handler
    async def submits(left: int) -> None:
        if left > 1:
            await call(submits(left - 1))
        else:
            await asyncio.sleep(0)  # so that the Job waits by then
            submit(Do(steps))

    for made in (awaits, submits):

        async def body(start: Callable[[int], HandlerNode[None]] = made) -> None:
            await call(start(levels))

        assert isinstance(await ended_by(body), EndlessWaitError)


async def test_two_that_await_each_other() -> None:
    """TT-20. Whoever comes second is told."""

    async def body() -> None:
        nodes: dict[str, HandlerNode[Any]] = {}

        async def wait(name: str) -> None:
            await asyncio.sleep(0)
            await nodes[name]

        nodes["a"] = call(do(lambda: wait("b")).named("a"))
        nodes["b"] = call(do(lambda: wait("a")).named("b"))
        await nodes["a"]

    error = await ended_by(body)
    assert isinstance(error, EndlessWaitError)
    assert "first.1/b.1" in str(error)


async def test_a_ring_over_two_commanders() -> None:
    """TT-11, TT-20. Of the same loop: a Job here waits for one there whose body waits for one queued here."""

    async with Commander() as other:

        async def there(queued: Job) -> None:
            await queued

        async def body() -> None:
            queued = submit(Do(steps, "queued"))
            far = submit(Do(lambda: there(queued), "far"), parent=other)
            with pytest.raises(EndlessWaitError):
                await far

        assert await ended_by(body) is None


async def test_waits_that_end_are_let_be() -> None:
    """TT-6, TT-7, TT-20. A handler may await Jobs, a body handlers, an open Commander all of them."""

    @handler
    async def of_jobs() -> list[Any]:
        return await asyncio.gather(*[submit(Do(_one), parent=current_node().commander) for _ in range(5)])

    async def _one() -> int:
        await asyncio.sleep(0)
        return 1

    async def goes_on() -> Any:
        return of_jobs()

    async def of_handlers() -> int:
        made = [call(nothing()) for _ in range(3)]
        await asyncio.gather(*made)
        return len(made)

    async with Commander() as commander:
        assert await submit(Do(goes_on)) == [1] * 5
        assert await submit(Do(of_handlers)) == 3
        assert await call(of_jobs()) == [1] * 5
        assert commander.running


async def test_a_job_beside_a_waiting_body_may_be_queued_elsewhere() -> None:
    """TT-6, TT-20. The handler that the body waits for gives its Jobs to the Commander: they run after it."""
    ran: list[str] = []

    async def later() -> None:
        ran.append("later")

    @handler
    async def gives() -> None:
        await asyncio.sleep(0)
        submit(Do(later), parent=current_node().commander)

    async def body() -> None:
        await call(gives())
        ran.append("body")

    assert await ended_by(body) is None
    assert ran == ["body", "later"]


async def test_looking_costs_no_more_than_the_nearer_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """TT-20. Many that await one node with many below it: the search does not go through them each time."""
    looked = 0
    step = waits._Front.step

    def counted(front: waits._Front) -> Any:
        nonlocal looked
        looked += 1
        return step(front)

    monkeypatch.setattr(waits._Front, "step", counted)
    go_on = asyncio.Event()

    @handler
    async def wide() -> None:
        for _ in range(1_000):
            call(do(go_on.wait))
        await go_on.wait()

    async def body() -> None:
        shared = call(wide())
        await asyncio.sleep(0)
        for _ in range(1_000):
            call(do(lambda: _await(shared)))
        await steps()
        go_on.set()

    async def _await(node: Any) -> None:
        await node

    assert await ended_by(body) is None
    assert 1_000 < looked < 20_000
