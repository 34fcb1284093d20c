"""A blocking iterable as an asynchronous one: nothing blocked, nothing read ahead, nothing left behind."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from casework.tasktree import BlockingStream, Commander, NodeState, ThreadsRefusedError, call

from .bodies import Do, do


class Source:
    """Gives `items`, notes what is done to it, and blocks before item number `block_at` until it is let go."""

    def __init__(self, items: list[Any], block_at: int | None = None, closing: BaseException | None = None) -> None:
        self.items, self.block_at, self.closing = items, block_at, closing
        self.given = 0
        self.closed = 0
        self.blocked = threading.Event()
        self.free = threading.Event()
        self.threads: set[int] = set()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.threads.add(threading.get_ident())
        if self.given == self.block_at:
            self.blocked.set()
            assert self.free.wait(30), "nobody closed the source"
        if self.given == len(self.items):
            raise StopIteration
        self.given += 1
        return self.items[self.given - 1]

    def close(self) -> None:
        self.closed += 1
        self.free.set()
        if self.closing is not None:
            raise self.closing


async def until(ready: Any) -> None:
    """Wait for a condition of another thread."""
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


async def test_all_items_come_in_order_none_among_them() -> None:
    """TT-22. None, falsy and equal items are items like others; the source is closed at its end, once."""
    source = Source([None, 0, "", None, "end"])
    assert [item async for item in BlockingStream(source)] == [None, 0, "", None, "end"]
    assert source.closed == 1
    assert threading.get_ident() not in source.threads


async def test_the_loop_turns_while_the_source_blocks() -> None:
    """TT-22. A read that blocks holds up its consumer, and nobody else."""
    source = Source([1], block_at=0)
    async with BlockingStream(source) as stream:
        reading = asyncio.create_task(anext(stream))
        await until(source.blocked.is_set)
        source.free.set()
        assert await reading == 1


async def test_nothing_is_read_ahead() -> None:
    """TT-22. The source is asked for an item when the consumer asks, so it cannot run away from it."""
    source = Source(list(range(1000)))
    async with BlockingStream(source) as stream:
        assert source.given == 0
        for wanted in range(5):
            assert await anext(stream) == wanted
            await asyncio.sleep(0.002)
            assert source.given == wanted + 1


async def test_an_error_of_the_source_reaches_the_consumer() -> None:
    """TT-22. As it is, after the items before it; the source is closed, and the stream is over."""
    closed = []

    def broken() -> Iterator[int]:
        try:
            yield 1
            raise LookupError("no more")
        finally:
            closed.append("closed")

    stream = BlockingStream(broken())
    assert await anext(stream) == 1
    with pytest.raises(LookupError, match="no more") as caught:
        await anext(stream)
    assert caught.traceback[-1].name == "broken"
    assert closed == ["closed"]
    assert [item async for item in stream] == []


@pytest.mark.parametrize("odd", [StopIteration("x"), StopAsyncIteration("x")])
async def test_an_end_in_the_wrong_place_is_an_error(odd: Exception) -> None:
    """TT-22. What would end the consumer's loop without a word is turned into an error."""

    class Odd:
        def __iter__(self) -> Iterator[int]:
            raise odd

    with pytest.raises(RuntimeError, match=type(odd).__name__):
        await anext(BlockingStream(Odd()))


async def test_early_close_reaches_the_source() -> None:
    """TT-22. Left early by `async with` or `aclose`, begun or not, the source is closed once."""
    begun, unbegun = Source([1, 2]), Source([1, 2])
    async with BlockingStream(begun) as stream:
        assert await anext(stream) == 1
    await stream.aclose()
    other = BlockingStream(unbegun)
    await other.aclose()
    await other.aclose()
    assert (begun.closed, unbegun.closed) == (1, 1)
    assert [item async for item in other] == []
    assert unbegun.given == 0


async def test_a_loop_that_is_left_closes_the_source() -> None:
    """TT-22. `break` drops the stream, and the loop closes what is dropped."""
    source = Source([1, 2, 3])
    async for _ in BlockingStream(source):
        break
    await until(lambda: source.closed == 1)
    await asyncio.sleep(0)
    assert source.given == 1


async def test_a_cancelled_consumer_closes_a_source_that_blocks() -> None:
    """TT-22. The cancellation reaches the source's `close()`, which ends the read; no thread is left hanging."""
    source = Source([1, 2], block_at=1)

    async def consume() -> None:
        async for _ in BlockingStream(source):
            pass

    consumer = asyncio.create_task(consume())
    await until(source.blocked.is_set)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert source.closed == 1
    assert source.given == 2  # its read has returned before the consumer did


async def test_a_generator_is_closed_when_its_read_has_returned() -> None:
    """TT-22. It cannot be closed while it runs: `interrupt` ends the read, and then its own `finally` runs."""
    blocked, free, ended = threading.Event(), threading.Event(), []

    def lines() -> Iterator[str]:
        try:
            yield "a"
            blocked.set()
            assert free.wait(30)
            yield "b"
        finally:
            ended.append(threading.get_ident())

    stream = BlockingStream(lines(), interrupt=free.set)
    assert await anext(stream) == "a"
    reading = asyncio.ensure_future(anext(stream))
    await until(blocked.is_set)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert len(ended) == 1
    assert ended != [threading.get_ident()]


async def test_a_second_cancellation_waits_no_longer() -> None:
    """TT-22. A source that nothing interrupts cannot hold whoever insists; it is closed when its read returns."""
    blocked, free, ended = threading.Event(), threading.Event(), threading.Event()
    before = asyncio.all_tasks()

    def stuck() -> Iterator[str]:
        try:
            blocked.set()
            free.wait(30)
            yield "late"
        finally:
            ended.set()

    reading = asyncio.ensure_future(anext(BlockingStream(stuck())))
    await until(blocked.is_set)
    reading.cancel()
    await asyncio.sleep(0.01)
    assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not ended.is_set()
    free.set()
    await until(ended.is_set)
    await until(lambda: asyncio.all_tasks() == before)  # the closing, told to nobody, has ended as well


async def test_more_streams_than_threads_are_cancelled_together() -> None:
    """TT-22. Blocked reads never take the last thread, so what breaks them off can always run."""
    sources = [Source([1], block_at=0) for _ in range(80)]
    tasks = [asyncio.ensure_future(anext(BlockingStream(source))) for source in sources]
    await until(lambda: sum(source.blocked.is_set() for source in sources) >= 2)
    for task in tasks:
        task.cancel()
    ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert {type(error) for error in ended} == {asyncio.CancelledError}
    assert {source.closed for source in sources} == {1}


async def test_an_error_of_close_reaches_whoever_closes() -> None:
    """TT-22. It is raised at `aclose`; noted on the error of a read; raised at the end where there is no other."""
    stream = BlockingStream(Source([1, 2], closing=OSError("stuck")))
    await anext(stream)
    with pytest.raises(OSError, match="stuck"):
        await stream.aclose()
    with pytest.raises(OSError, match="stuck"):
        _ = [item async for item in BlockingStream(Source([1], closing=OSError("stuck")))]

    class Broken(Source):
        def __next__(self) -> Any:
            raise LookupError("no more")

    with pytest.raises(LookupError) as caught:
        await anext(BlockingStream(Broken([], closing=OSError("stuck"))))
    assert "stuck" in caught.value.__notes__[0]


async def test_two_readers_at_once_are_refused() -> None:
    """TT-22. A stream has one consumer; a second read beside one under way is an error, and harms nothing."""
    source = Source([1, 2], block_at=0)
    async with BlockingStream(source) as stream:
        first = asyncio.ensure_future(anext(stream))
        await until(source.blocked.is_set)
        with pytest.raises(RuntimeError, match="already running"):
            await anext(stream)
        source.free.set()
        assert await first == 1


async def test_a_terminated_node_leaves_no_thread() -> None:
    """TT-22. In a tree: termination of the node that reads closes the source, and waits for its thread."""
    source = Source([1], block_at=0)

    async def read() -> Any:
        return [item async for item in BlockingStream(source)]

    async def body() -> NodeState:
        node = call(do(read))
        await until(source.blocked.is_set)
        await node.terminate()
        assert source.closed == 1
        return node.state

    assert await Commander().run(Do(body)) is NodeState.TERMINATED


def test_the_end_of_the_loop_ends_the_stream() -> None:
    """TT-22. A program that is interrupted, its loop cancelling all there is, hangs on no source."""
    source = Source([1], block_at=0)

    async def main() -> None:
        reading = asyncio.ensure_future(anext(BlockingStream(source)))
        await until(source.blocked.is_set)
        assert not reading.done()

    asyncio.run(main())
    assert source.closed == 1


class Threadless(asyncio.SelectorEventLoop):
    """A loop that takes no calls from other threads, as that of a durable workflow."""

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # refuses any
        raise NotImplementedError


def test_a_loop_without_threads_refuses_by_name() -> None:
    """TT-22. The refusal says why and what to do, and the source is not touched."""
    source = Source([1])

    async def main() -> None:
        stream = BlockingStream(source)
        with pytest.raises(ThreadsRefusedError, match=r"no threads.*activity"):
            await anext(stream)
        await stream.aclose()

    loop = Threadless()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    assert (source.given, source.closed) == (0, 0)


@pytest.mark.parametrize("generator", [False, True], ids=["a source with close", "a generator"])
async def test_a_source_is_closed_once_whenever_its_reader_is_cancelled(generator: bool) -> None:
    """TT-22. At any moment: before the first read, in one, between two, at the end, or twice."""
    sources = [Source(list(range(5))) for _ in range(120)]
    before = asyncio.all_tasks()

    def lines(source: Source) -> Iterator[int]:
        source.threads.add(threading.get_ident())
        try:
            yield from source.items
        finally:
            source.close()

    async def consume(source: Source) -> None:
        async with BlockingStream(lines(source) if generator else source) as stream:
            async for _ in stream:
                pass

    for number, source in enumerate(sources):
        reading = asyncio.create_task(consume(source))
        for _ in range(number % 40):
            await asyncio.sleep(0)
        if number % 3:
            await asyncio.sleep(number % 7 / 4000)
        reading.cancel()
        if number % 2:
            await asyncio.sleep(0)
            reading.cancel()
        await asyncio.wait([reading])
    await until(lambda: asyncio.all_tasks() == before)  # what was cancelled twice is closed by now, too
    begun = [source for source in sources if source.threads]
    assert len(begun) > 20
    assert {source.closed for source in begun} == {1}
