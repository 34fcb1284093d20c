"""Splits with consumers of any pace and choice: each gets all that is its own, and the source is never far ahead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casework.tasktree import Consumer, Split, SplitReply, ToolCall

from .bodies import steps

PICKS: tuple[Callable[[int], list[int]], ...] = (
    lambda item: [item],
    lambda item: [item] * (item % 3),
    lambda item: [],
    lambda item: [item] * (item % 2),
)


async def counting(end: int, pauses: list[int], given_out: list[int]) -> AsyncIterator[int]:
    for item in range(end):
        await steps(pauses[item % len(pauses)] if pauses else 0)
        given_out.append(item)
        yield item


@settings(max_examples=150, deadline=None)
@given(
    end=st.integers(0, 30),
    limit=st.integers(1, 5),
    pauses=st.lists(st.integers(0, 3), max_size=4),
    readers=st.lists(
        st.tuples(st.sampled_from(PICKS), st.integers(0, 6), st.none() | st.integers(0, 8)), min_size=1, max_size=4
    ),
)
async def test_every_reader_gets_its_own(end: int, limit: int, pauses: list[int], readers: list[Any]) -> None:
    """TT-22. All values in order, whatever the paces; one that leaves after some lets the others go on."""
    given_out: list[int] = []

    async def read(consumer: Consumer[int], pause: int, leaves: int | None) -> list[int]:
        found: list[int] = []
        while leaves is None or len(found) < leaves:
            value = await anext(consumer, None)
            if value is None:
                return found
            found.append(value)
            await steps(pause)
        await consumer.aclose()
        return found

    async with Split(counting(end, pauses, given_out), limit=limit) as split:
        consumers = [split.consumer(pick) for pick, _, _ in readers]
        reads = [read(consumer, *how) for consumer, (_, *how) in zip(consumers, readers, strict=True)]
        found = await asyncio.wait_for(asyncio.gather(*reads), 20)
    for got, (pick, _, leaves) in zip(found, readers, strict=True):
        wanted = [value for item in range(end) for value in pick(item)]
        assert got == wanted[:leaves]
    assert given_out == list(range(len(given_out)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    asked=st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=4),
    cuts=st.integers(1, 7),
    spaced=st.booleans(),
    mixed=st.booleans(),
)
async def test_calls_come_whole_in_whatever_crumbs(asked: list[Any], cuts: int, spaced: bool, mixed: bool) -> None:
    """TT-22. Arguments with quotes, braces and escapes in them, one call after the other or mixed, are put together."""
    import json

    texts = [json.dumps(each, indent=1 if spaced else None) for each in asked]
    parts = [
        (start, index, text[start : start + cuts])
        for index, text in enumerate(texts)
        for start in range(0, len(text), cuts)
    ]
    if mixed:
        parts.sort(key=lambda each: each[:2])

    async def chunks() -> AsyncIterator[Any]:
        for start, index, piece in parts:
            call = {"index": index, "function": {"arguments": piece}}
            if start == 0:
                call = {**call, "id": f"c{index}", "function": {"name": f"f{index}", "arguments": piece}}
            yield {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}]}

    async with SplitReply(chunks()) as reply:
        calls = sorted([call async for call in reply.calls], key=lambda call: call.id)
    assert calls == [ToolCall(f"c{n}", f"f{n}", text) for n, text in enumerate(texts)]
