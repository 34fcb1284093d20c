"""Free trees that use the streaming adapters, for a test: durable code has no threads, and needs none to split."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from casework.app import App
from casework.tasktree import BlockingStream, Split, ThreadsRefusedError
from casework.trees import TreeContext, free_tree


async def counted(end: int) -> AsyncIterator[int]:
    for number in range(end):
        await asyncio.sleep(0)
        yield number


async def all_of(values: AsyncIterator[int]) -> list[int]:
    return [value async for value in values]


@free_tree("streams", version=1)
async def streams(_: TreeContext) -> Any:
    """Tries to read a blocking source, and splits an asynchronous one."""
    try:
        await anext(BlockingStream([1]))
        refused = ""
    except ThreadsRefusedError as error:
        refused = str(error)
    async with Split(counted(5), limit=2) as split:
        whole, even = split.consumer(), split.consumer(lambda item: [] if item % 2 else [item])
        halves = await asyncio.gather(all_of(whole), all_of(even))
    return {"refused": refused, "halves": halves}


app = App(trees=[streams])
