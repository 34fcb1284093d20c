"""One stream for several consumers: nobody loses anything, nobody hangs, nothing is read that nobody wants."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from casework.tasktree import (
    Commander,
    Consumer,
    NodeState,
    ReplyCutError,
    Split,
    SplitReply,
    StreamOverrunError,
    StreamUseError,
    ToolCall,
    call,
)

from .bodies import Do, do, steps


class Source:
    """Counts up to `end`, failing there if told to; notes how far it was read and how often it was closed."""

    def __init__(self, end: int = 10, error: BaseException | None = None, blocks: bool = False) -> None:
        self.end, self.error, self.blocks = end, error, blocks
        self.given = self.closed = 0

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0)
        if self.given == self.end:
            if self.blocks:
                await asyncio.Event().wait()
            raise self.error or StopAsyncIteration
        self.given += 1
        return self.given

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


async def all_of(consumer: Consumer[Any], found: list[Any] | None = None) -> list[Any]:
    found = [] if found is None else found
    async for value in consumer:
        found.append(value)
    return found


def even(item: int) -> list[int]:
    return [] if item % 2 else [item]


async def test_each_consumer_gets_what_it_picks() -> None:
    """TT-22. All items or some, or several values of one, in order; the source is read once and closed once."""
    source = Source()
    async with Split(source) as split:
        wanted: tuple[Consumer[Any], ...] = (
            split.consumer(),
            split.consumer(even, at_end=lambda: [99]),
            split.consumer(lambda item: [str(item)] * (item == 2) * 2),
        )
        whole, some, twice = await asyncio.gather(*(all_of(each) for each in wanted))
    assert whole == list(range(1, 11))
    assert some == [2, 4, 6, 8, 10, 99]
    assert twice == ["2", "2"]
    assert (source.given, source.closed) == (10, 1)


async def test_a_slow_consumer_loses_nothing_and_holds_the_source_back() -> None:
    """TT-22. Bounded buffering: the source is read no further than the slowest reader and its buffer."""
    source, ahead = Source(200), []
    async with Split(source, limit=3) as split:
        quick, slow = split.consumer(), split.consumer()

        async def slowly() -> list[int]:
            found = []
            async for value in slow:
                found.append(value)
                await steps(20)
                ahead.append(source.given - value)
            return found

        found = await asyncio.gather(all_of(quick), slowly())
    assert found[0] == found[1] == list(range(1, 201))
    assert max(ahead) == 3


async def test_nothing_is_read_that_nobody_waits_for() -> None:
    """TT-22. The source is asked when a consumer waits, and not before."""
    source = Source()
    async with Split(source) as split:
        only = split.consumer()
        await steps()
        assert source.given == 0
        assert await anext(only) == 1
        await steps()
        assert source.given == 1
    assert source.closed == 1


async def test_an_error_of_the_source_reaches_every_consumer() -> None:
    """TT-22. After what was buffered, as the error itself with the place where it arose; the source is closed."""
    source = Source(3, LookupError("cut"))
    async with Split(source) as split:
        one, two = split.consumer(), split.consumer(even)
        for consumer, wanted in ((one, [1, 2, 3]), (two, [2])):
            found: list[int] = []
            with pytest.raises(LookupError, match="cut") as caught:
                await all_of(consumer, found)
            assert found == wanted
            assert caught.traceback[-1].name == "__anext__"
            assert caught.value is source.error
    assert source.closed == 1


async def test_an_error_in_one_consumers_choice_is_its_own() -> None:
    """TT-22. The others go on to the end."""

    def picky(item: int) -> list[int]:
        return [10 // (3 - item)]

    async with Split(Source(5)) as split:
        one, two = split.consumer(picky), split.consumer()
        assert await anext(one) == 5
        with pytest.raises(ZeroDivisionError):
            await all_of(one)
        assert await all_of(two) == [1, 2, 3, 4, 5]


async def test_a_closed_consumer_holds_nobody() -> None:
    """TT-22. Early close of one lets the others go on; that of the last closes the source."""
    source = Source(100)
    async with Split(source, limit=2) as split:
        one, two = split.consumer(), split.consumer()
        assert await anext(two) == 1
        await two.aclose()
        assert [await anext(one) for _ in range(50)] == list(range(1, 51))
        assert await all_of(two) == []
        assert source.closed == 0
        await one.aclose()
        assert source.closed == 1
        assert await all_of(one) == []
    assert (source.given, source.closed) == (50, 1)


async def test_a_consumer_that_closes_takes_nothing_from_the_others() -> None:
    """TT-22. Also where the source has ended, and only buffers are left to read."""
    async with Split(Source(3)) as split:
        quick, slow = split.consumer(), split.consumer()
        assert await all_of(quick) == [1, 2, 3]
        await quick.aclose()
        assert await all_of(slow) == [1, 2, 3]


async def test_leaving_ends_a_source_that_waits() -> None:
    """TT-22. The read under way is cancelled, the source closed, waiting consumers end; unread splits close, too."""
    source, untouched = Source(0, blocks=True), Source()
    async with Split(source) as split:
        reader = asyncio.create_task(all_of(split.consumer()))
        await steps()
    assert await reader == []
    assert source.closed == 1
    async with Split(untouched) as split:
        split.consumer()
    assert (untouched.given, untouched.closed) == (0, 1)


async def test_a_consumer_that_nobody_ever_read_hangs_nobody() -> None:
    """TT-22. When its buffer is full it is cut loose; read later, it says so and has no hole."""
    async with Split(Source(10), limit=4) as split:
        read, unread = split.consumer(), split.consumer(name="calls")
        assert await asyncio.wait_for(all_of(read), 10) == list(range(1, 11))
        found: list[int] = []
        with pytest.raises(StreamOverrunError, match="calls was not read while 4 values"):
            await all_of(unread, found)
        assert found == [1, 2, 3, 4]


async def test_what_fits_may_be_read_one_consumer_after_the_other() -> None:
    """TT-22. Within the buffer the order of reading does not matter."""
    async with Split(Source(10), limit=10) as split:
        one, two = split.consumer(), split.consumer()
        assert await all_of(one) == await all_of(two) == list(range(1, 11))


@pytest.mark.parametrize("how", ["its task ended", "its task waits here"])
async def test_a_consumer_that_nobody_reads_any_more_hangs_nobody(how: str) -> None:
    """TT-22. So does one whose reader has ended, or itself waits at another consumer of the split."""
    async with Split(Source(10), limit=2) as split:
        one, two = split.consumer(), split.consumer()
        if how == "its task ended":
            other = asyncio.create_task(all_of(one))  # waits before the reader of `two` ends
            assert await asyncio.create_task(anext(two)) == 1
            assert await asyncio.wait_for(other, 10) == list(range(1, 11))
        else:
            assert await anext(two) == 1
            assert [value async for value in one] == list(range(1, 11))
        with pytest.raises(StreamOverrunError):
            await all_of(two)


async def test_a_cancelled_read_takes_no_value_with_it() -> None:
    """TT-22. The next read gets it."""
    source = Source(3)
    async with Split(source) as split:
        one = split.consumer()
        reading = asyncio.ensure_future(anext(one))
        await asyncio.sleep(0)
        reading.cancel()
        await steps()
        assert reading.cancelled()
        assert await all_of(one) == [1, 2, 3]


async def test_misuse_is_refused() -> None:
    """TT-22. A consumer outside the block, or after the first read; two readers of one; no room at all."""
    split = Split(Source())
    with pytest.raises(StreamUseError, match="async with"):
        split.consumer()
    async with split:
        one = split.consumer()
        first = asyncio.ensure_future(anext(one))
        await asyncio.sleep(0)
        with pytest.raises(StreamUseError, match="another task"):
            await anext(one)
        with pytest.raises(StreamUseError, match="before any"):
            split.consumer()
        assert await first == 1
    with pytest.raises(ValueError, match="limit is 0"):
        Split(Source(), limit=0)


async def test_an_error_of_closing_is_told() -> None:
    """TT-22. To whoever leaves early; noted on an error that the source had; else to its consumers."""

    class Stuck(Source):
        async def aclose(self) -> None:
            raise OSError("stuck")

    with pytest.raises(OSError, match="stuck"):
        async with Split(Stuck()) as split:
            assert await anext(split.consumer()) == 1
    async with Split(Stuck(1, LookupError("cut"))) as split:
        with pytest.raises(LookupError) as caught:
            await all_of(split.consumer())
    assert "stuck" in caught.value.__notes__[0]
    async with Split(Stuck(1)) as split:
        with pytest.raises(OSError, match="stuck"):
            await all_of(split.consumer())


async def test_in_a_tree_termination_closes_the_source() -> None:
    """TT-22. Of the node that holds the split; its readers below it end with it."""
    source = Source(1, blocks=True)

    async def hold() -> None:
        async with Split(source) as split:
            one, two = split.consumer(), split.consumer()
            call(do(lambda: all_of(one)))
            await call(do(lambda: all_of(two)))

    async def body() -> NodeState:
        node = call(do(hold))
        await steps()
        await node.terminate()
        assert source.closed == 1
        return node.state

    assert await Commander().run(Do(body)) is NodeState.TERMINATED


# ---- one reply of a model


def chunk(content: str | None = None, *calls: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": content, "tool_calls": list(calls) or None}, "finish_reason": reason}]}


def part(index: int, arguments: str = "", **named: str) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": named["name"]} if "name" in named else {})}
    return {"index": index, "function": function, **({"id": named["id"]} if "id" in named else {})}


def objects(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{key: objects(each) for key, each in value.items()})
    return [objects(each) for each in value] if isinstance(value, list) else value


async def stream(*chunks: Any) -> AsyncIterator[Any]:
    for each in chunks:
        await asyncio.sleep(0)
        yield each


REPLY = [
    chunk("Let me "),
    chunk("look."),
    chunk(None, part(0, id="a", name="credit_check")),
    chunk(None, part(0, '{"id": "A-1 }\\" {",')),
    chunk(None, part(1, '{"x": [', id="b", name="income")),
    chunk(None, part(0, ' "deep": {}}')),
    chunk(None, part(1, "1]}"), part(2, id="c", name="now")),
    chunk(reason="tool_calls"),
    {"choices": [], "usage": {"total_tokens": 3}},
]
CALLS = [
    ToolCall("a", "credit_check", '{"id": "A-1 }\\" {", "deep": {}}'),
    ToolCall("b", "income", '{"x": [1]}'),
    ToolCall("c", "now", ""),
]


@pytest.mark.parametrize("form", [lambda each: each, objects], ids=["dictionaries", "objects"])
async def test_a_reply_is_split_into_words_and_whole_calls(form: Any) -> None:
    """TT-22. Text for the user as it comes, tool calls whole, though their fragments come mixed."""
    async with SplitReply(stream(*map(form, REPLY))) as reply:
        words, calls = await asyncio.gather(all_of(reply.words), all_of(reply.calls))
    assert words == ["Let me ", "look."]
    assert calls == CALLS


async def test_a_call_is_handed_on_as_soon_as_it_is_whole() -> None:
    """TT-22. While the model still writes the next."""

    async def unending() -> AsyncIterator[Any]:
        for each in REPLY[:6]:
            yield each
        await asyncio.Event().wait()

    async with SplitReply(unending()) as reply:
        assert await asyncio.wait_for(anext(reply.calls), 10) == CALLS[0]


async def test_calls_that_share_an_index_are_told_apart_by_id() -> None:
    """TT-22. Some servers give every call the index 0, or none."""
    one, two = part(0, "{}", id="a", name="f"), part(0, '{"x": 1}', id="b", name="f")
    del two["index"]
    async with SplitReply(stream(chunk(None, one), chunk(None, two))) as reply:
        assert await all_of(reply.calls) == [ToolCall("a", "f", "{}"), ToolCall("b", "f", '{"x": 1}')]


@pytest.mark.parametrize("end", [[], [chunk(reason="length")]])
async def test_half_a_call_is_an_error_and_no_call(end: list[Any]) -> None:
    """TT-22. A reply that was cut gives its words, and an error in place of the call that has only begun."""
    async with SplitReply(stream(*REPLY[:4], *end)) as reply:
        assert await all_of(reply.words) == ["Let me ", "look."]
        with pytest.raises(ReplyCutError, match="middle of a call of 'credit_check'"):
            await all_of(reply.calls)
