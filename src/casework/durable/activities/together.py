"""Calls that come while one is under way are made together: one trip to the database and one commit for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MOST = 50
"""Most calls that are made together."""


class Together(Generic[Asked, Answer]):
    """`call` answers several at once, each with its answer or its error; what it raises itself goes to all of them."""

    def __init__(self, call: Callable[[list[Asked]], Awaitable[Sequence[Answer | Exception]]]) -> None:
        self._call = call
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, asked: Asked) -> Answer:
        """The answer to one; whoever does not wait for it any more does not stop the call."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                for (_, answer), made in zip(batch, await self._made([asked for asked, _ in batch]), strict=True):
                    if answer.done():
                        continue
                    if isinstance(made, Exception):
                        answer.set_exception(made)
                    else:
                        answer.set_result(made)
        finally:
            self._running = None

    async def _made(self, asked: list[Asked]) -> Sequence[Answer | Exception]:
        try:
            return await self._call(asked)
        except Exception as error:  # noqa: BLE001  # whatever it is, each of them is told
            return [error] * len(asked)
