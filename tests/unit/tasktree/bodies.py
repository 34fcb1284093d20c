"""Small nodes that the tests of the tree share."""

import asyncio
from typing import Any

from casework.tasktree import Job, handler


class Do(Job):
    """A Job whose body is given."""

    def __init__(self, body: Any, name: str | None = None) -> None:
        super().__init__(name)
        self.body = body

    async def task(self) -> Any:
        return await self.body()


@handler
async def do(body: Any) -> Any:
    """A handler whose body is given."""
    return await body()


@handler
async def nothing() -> None:
    """Ends at its second step."""
    await asyncio.sleep(0)


@handler
async def for_ever() -> None:
    """Ends only when it is cancelled."""
    await asyncio.Event().wait()


@handler
async def fails(error: BaseException) -> None:
    """Fails at its second step."""
    await asyncio.sleep(0)
    raise error


async def steps(count: int = 10) -> None:
    """Let the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)
