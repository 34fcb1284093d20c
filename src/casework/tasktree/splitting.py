"""One stream for several consumers, each at its own pace.

One task reads the source, item by item, and only while a consumer waits for something and none is `limit` values
behind. So nothing is read that nobody wants, no consumer loses anything, and no buffer grows without bound: a slow
consumer holds the others back.

A consumer that nobody reads must not do that. One counts as unread if it was never asked for a value, if the task that
last asked it has ended, or if that task now waits at another consumer of the same split. Where more comes for such a
one than its buffer holds, it is cut loose and the others go on; whoever reads it later gets what was buffered and then
`StreamOverrunError`, never a stream with a hole in it. What is known to be wanted no more is closed (`aclose`).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from casework.tasktree.errors import StreamOverrunError, StreamUseError

T = TypeVar("T")
U = TypeVar("U")
LIMIT = 1000
"""Values that wait for one consumer before the source is read no further."""


class Split(Generic[T]):
    """Reads `source` once for several consumers. Make them in its `async with` block, before the first value is read.

        async with Split(chunks) as split:
            words, calls = split.consumer(words_of), split.consumer(calls_of)
            await asyncio.gather(show(words), act(calls))

    Leaving the block ends all consumers and closes the source (its `aclose()`). An error of the source reaches every
    consumer, after what was buffered for it. Uses no thread and no clock, so it runs in a durable workflow too.

    Args:
        source: any asynchronous iterable; read by one task alone, in the context of whoever opened the split.
        limit: how many values may wait for one consumer; one item of the source may give several at once.
    """

    def __init__(self, source: AsyncIterable[T], *, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"limit is {limit}: a consumer needs room for 1 value at least.")
        self._source = source
        self._limit = limit
        self._consumers: list[Consumer[Any]] = []
        self._pump: asyncio.Task[Exception | None] | None = None
        self._context: contextvars.Context | None = None
        self._stir = asyncio.Event()
        self._over = False
        self._fetching = False  # only then a cancellation is needed to end the reading

    @overload
    def consumer(self, pick: None = None, *, name: str | None = None) -> Consumer[T]: ...

    @overload
    def consumer(
        self,
        pick: Callable[[T], Iterable[U]],
        *,
        at_end: Callable[[], Iterable[U]] | None = None,
        name: str | None = None,
    ) -> Consumer[U]: ...

    def consumer(
        self,
        pick: Callable[[T], Iterable[Any]] | None = None,
        *,
        at_end: Callable[[], Iterable[Any]] | None = None,
        name: str | None = None,
    ) -> Consumer[Any]:
        """A further consumer: of the values that `pick` makes of each item (none, one or many), or of the items.

        `at_end` gives the last values, when the source has ended by itself. An error in either reaches this consumer
        alone.

        Raises:
            StreamUseError: the source is being read already, or the split is not open.
        """
        if self._context is None or self._over or self._pump is not None:
            raise StreamUseError(
                "This split takes no further consumer: make them in its `async with` block, before any is read."
            )
        made: Consumer[Any] = Consumer(self, pick, at_end, name or f"consumer {len(self._consumers) + 1}")
        self._consumers.append(made)
        return made

    async def aclose(self) -> None:
        """End all consumers and close the source; returns when it is closed.

        Raises:
            Exception: what the `aclose()` of the source raised.
        """
        for consumer in self._consumers:
            consumer._leave()
        await self._shut()

    async def _shut(self) -> None:
        """Close the source. What is buffered stays."""
        over, self._over = self._over, True
        if self._pump is None and not over:
            self._pump = asyncio.get_running_loop().create_task(_closed(self._source))
        elif self._pump is not None and self._fetching:
            self._pump.cancel()
        if self._pump is None or self._pump is asyncio.current_task():
            return
        error = await asyncio.shield(self._pump)
        if error is not None and not over:
            raise error

    async def __aenter__(self) -> Self:
        self._context = contextvars.copy_context()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # ---- reading

    def _wake(self) -> None:
        self._stir.set()
        if self._pump is None and not self._over:
            self._pump = asyncio.get_running_loop().create_task(self._read(), context=self._context)

    async def _read(self) -> Exception | None:
        """The one task that reads the source, to its end or to that of the last consumer, and closes it.

        Returns the error of closing it, for whoever closes the split; consumers that are still there are told, too.
        """
        error: BaseException | None = None
        iterator: AsyncIterator[T] | None = None
        try:
            iterator = aiter(self._source)
            await self._hand_out(iterator)
        except GeneratorExit:
            raise
        except BaseException as fault:  # noqa: BLE001 - it reaches every consumer
            error = fault
        failed = await _closed(iterator, self._source)
        if failed is not None and error is not None:
            error.add_note(f"and closing the source failed: {type(failed).__name__}: {failed}")
        self._over = True
        for consumer in self._consumers:
            consumer._finish(error or failed)
        return failed

    async def _hand_out(self, iterator: AsyncIterator[T]) -> None:
        while await self._wanted():
            self._fetching = True
            try:
                item = await anext(iterator)
            except StopAsyncIteration:
                return
            finally:
                self._fetching = False
            for consumer in self._consumers:
                consumer._take(item, self._limit)

    async def _wanted(self) -> bool:
        """Wait until there is reason to read on. False: nobody is left to read for."""
        while True:
            self._stir.clear()
            open_ones = [consumer for consumer in self._consumers if consumer._open]
            if not open_ones:
                return False
            waiting = {consumer._reader for consumer in open_ones if consumer._waits}
            full = [consumer for consumer in open_ones if len(consumer._buffer) >= self._limit]
            if waiting and all(consumer._is_unread(waiting) for consumer in full):
                return True  # what comes now for a full one cuts it loose
            await self._stir.wait()


class Consumer(AsyncIterator[U], Generic[U]):
    """One consumer of a `Split`: an asynchronous iterator. One task reads it at a time.

    A read that is cancelled takes nothing with it: the next one gets the value.
    """

    def __init__(
        self,
        split: Split[Any],
        pick: Callable[[Any], Iterable[U]] | None,
        at_end: Callable[[], Iterable[U]] | None,
        name: str,
    ) -> None:
        self.name = name
        self._split = split
        self._pick: Callable[[Any], Iterable[Any]] = pick or _whole
        self._at_end = at_end
        self._buffer: deque[U] = deque()
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._open = True  # more may come
        self._reader: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def __anext__(self) -> U:
        if self._waiting is not None:
            raise StreamUseError(f"{self.name} is being read by another task. Give each reader a consumer of its own.")
        self._read_by(asyncio.current_task())
        while not self._buffer and self._open:
            self._waiting = asyncio.get_running_loop().create_future()
            self._split._wake()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if self._buffer:
            value = self._buffer.popleft()
            self._split._stir.set()
            return value
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)  # as it was: each reader lengthens it
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Want no more. What was buffered is dropped; with the last open consumer the source is closed, too."""
        self._leave()
        if not any(consumer._open for consumer in self._split._consumers):
            await self._split._shut()

    # ---- for the split

    @property
    def _waits(self) -> bool:
        return self._waiting is not None and not self._waiting.done()

    def _read_by(self, task: asyncio.Task[Any] | None) -> None:
        if task is not self._reader:
            if self._reader is not None:
                self._reader.remove_done_callback(self._reader_ended)
            self._reader = task
            if task is not None:
                task.add_done_callback(self._reader_ended)

    def _reader_ended(self, _task: object) -> None:
        self._split._stir.set()

    def _is_unread(self, waiting: set[asyncio.Task[Any] | None]) -> bool:
        return self._reader is None or self._reader.done() or self._reader in waiting

    def _take(self, item: Any, limit: int) -> None:
        if not self._open:
            return
        try:
            values = tuple(self._pick(item))
        except Exception as error:  # noqa: BLE001 - it is this consumer's, and the others go on
            self._end(error)
            return
        if values and len(self._buffer) >= limit:
            self._overrun(limit)
        elif values:
            self._buffer.extend(values)
            self._tell()

    def _finish(self, error: BaseException | None) -> None:
        """The source has ended."""
        if not self._open:
            return
        if error is None and self._at_end is not None:
            try:
                self._buffer.extend(self._at_end())
            except Exception as fault:  # noqa: BLE001 - as above
                error = fault
        self._end(error)

    def _overrun(self, limit: int) -> None:
        self._end(
            StreamOverrunError(
                f"{self.name} was not read while {limit} values came for it, and the stream went on without it. "
                "Read the consumers side by side, close those that are not wanted, or raise `limit`."
            )
        )

    def _leave(self) -> None:
        self._buffer.clear()
        self._error = None
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if self._open:
            self._open, self._error = False, error
            self._traceback = None if error is None else error.__traceback__
            if self._reader is not None:
                self._reader.remove_done_callback(self._reader_ended)
        self._tell()
        self._split._stir.set()

    def _tell(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _whole(item: Any) -> Iterable[Any]:
    return (item,)


async def _closed(*things: object) -> Exception | None:
    """Close each by its `aclose()` or `close()`, iterator before source, and return the first error."""
    first = None
    for place, thing in enumerate(things):
        close = getattr(thing, "aclose", None) or getattr(thing, "close", None)
        if close is None or any(thing is earlier for earlier in things[:place]):
            continue
        try:
            outcome = close()
            if inspect.isawaitable(outcome):
                await outcome
        except Exception as error:  # noqa: BLE001 - told to whoever closes
            first = first or error
    return first
