"""A blocking iterable as an asynchronous one: the one place of the tree that uses a thread.

Each item is fetched by one call in a thread of the loop, when the consumer asks for it and not before: nothing is read
ahead. The stream owns its source and closes it once, however it ends: exhausted, failed, closed, left or cancelled.

A thread cannot be cancelled. So a consumer that is cancelled in the middle of a read waits until the read has returned,
and leaves no thread behind. What makes a blocked read return is `interrupt`, or the source's own `close()`. A
generator cannot be closed while it runs, so without an `interrupt` its read takes the time it takes. A second
cancellation waits no longer: the source is then closed when the read returns.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from casework.tasktree.errors import ThreadsRefusedError

T = TypeVar("T")

_Step = tuple[Any, BaseException | None, BaseException | None]
"""What one read gave: the item, the error of the source, and that of closing it."""
_END = object()
_CLOSING: set[asyncio.Task[Any]] = set()
"""Sources that are being closed for consumers that wait no longer; a loop holds its tasks weakly."""


class BlockingStream(AsyncIterator[T], Generic[T]):
    """The items of a blocking iterable, without blocking the loop. Any item counts, None too.

    Leave it early by `aclose()` or `async with`; a stream that is dropped is closed by the loop, as a generator is.
    One consumer reads it: a second read beside one under way is a RuntimeError.

    Args:
        source: is iterated in threads, never in two at a time. Its `close()`, if it has one, is called at the end.
        interrupt: makes a blocked read return, as the `close` of a connection does; called in a thread of its own
            where the consumer leaves in the middle of a read. Without it that is `source.close()`, which is called
            again after the read where it fails at that moment, as a generator's does.

    Raises:
        ThreadsRefusedError: at the first item, in a loop that has no threads.
    """

    def __init__(self, source: Iterable[T], *, interrupt: Callable[[], object] | None = None) -> None:
        self._reader = _Reader(source, interrupt)
        self._items: AsyncGenerator[T, None] = _items(self._reader)

    async def __anext__(self) -> T:
        return await self._items.__anext__()

    async def aclose(self) -> None:
        """Close the stream and its source; returns when no thread is at work for it. Closing twice does nothing.

        Raises:
            Exception: what the `close()` of the source raised.
        """
        if not self._reader.begun:
            await self._reader.close()  # a generator that never began would not do it
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _items(reader: _Reader[T]) -> AsyncGenerator[T, None]:
    # A generator, because the loop closes one that nobody holds any more.
    reader.begin()
    try:
        while (item := await reader.read()) is not _END:
            yield item
    except asyncio.CancelledError:
        await reader.close(quietly=True)
        raise
    finally:
        await reader.close()


class _Reader(Generic[T]):
    """The source, used by one thread at a time. What closes it is taken from lists, so that each is called once."""

    def __init__(self, source: Iterable[T], interrupt: Callable[[], object] | None) -> None:
        self._source = source
        self._iterator: Iterator[T] | None = None
        self._closers: list[Callable[[], object]] = []  # the last is called first
        self._keep_close_of(source)
        self._interrupt = interrupt
        self._work: asyncio.Task[_Step] | None = None
        self._in_step = False
        self._closing = False
        self.begun = False

    def _keep_close_of(self, thing: object) -> None:
        close = getattr(thing, "close", None)
        if callable(close):
            self._closers.append(close)

    def begin(self) -> None:
        """Refuse a loop without threads before anything is touched."""
        self.begun = True
        try:
            asyncio.get_running_loop().call_soon_threadsafe(_nothing)
        except NotImplementedError:
            self._closing = True
            raise ThreadsRefusedError(
                f"{self._source!r:.200} cannot be read here: this event loop has no threads, as that of a durable "
                "workflow. Read it in an activity, or pass an asynchronous iterable."
            ) from None

    async def read(self) -> Any:
        """The next item, or the mark of the end."""
        if self._closing:
            return _END
        room = _Room.of(asyncio.get_running_loop())
        await room.acquire()
        self._work = asyncio.create_task(asyncio.to_thread(self._step))
        self._work.add_done_callback(room.release)
        item, error, closing = await asyncio.shield(self._work)
        if error is not None and closing is not None:
            error.add_note(f"and its close() failed: {type(closing).__name__}: {closing}")
        try:
            if error is not None:
                raise error
            if closing is not None:
                raise closing
        finally:
            del error, closing  # else error and frame hold each other
        return item

    def _step(self) -> _Step:
        """In a thread: one item, or how the source ended, which then is closed here."""
        self._in_step = True
        item: Any = _END
        error: BaseException | None = None
        try:
            if self._iterator is None:
                self._iterator = iter(self._source)
                if self._iterator is not self._source:
                    self._keep_close_of(self._iterator)
            item = next(self._iterator, _END)
        except (StopIteration, StopAsyncIteration) as odd:
            error = RuntimeError(f"{self._source!r:.200} raised {type(odd).__name__} where it ends nothing.")
            error.__cause__ = odd
        except BaseException as fault:  # noqa: BLE001 - whatever it is, it reaches the consumer
            error = fault
        self._in_step = False
        return item, error, self._release() if item is _END or self._closing else None

    def _release(self) -> BaseException | None:
        """In a thread: close iterator and source. Returns the first error."""
        first = None
        while self._closers:
            try:
                self._closers.pop()()
            except BaseException as fault:  # noqa: BLE001 - handed to whoever reads or closes
                first = first or fault
        return first

    async def close(self, *, quietly: bool = False) -> None:
        """Close the source, after the read that is under way; once. `quietly` tells an error to the loop alone."""
        if self._closing:
            return
        self._closing = True
        if not self._reading and not self._closers:
            return
        task = asyncio.create_task(self._close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)
        error = await asyncio.shield(task)
        if error is not None and not quietly:
            raise error
        if error is not None:
            told = {"message": f"close() of {self._source!r:.200} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)

    @property
    def _reading(self) -> bool:
        """Whether a thread is in the source, or about to be; also where the loop has cancelled what waits for it."""
        return self._in_step or (self._work is not None and not self._work.done())

    async def _close(self) -> BaseException | None:
        first = await asyncio.to_thread(self._break_off) if self._reading else None
        if self._work is not None and not self._work.done():
            await asyncio.wait([self._work])
        if self._work is not None and not self._work.cancelled():
            first = first or self._work.result()[2]
        if not self._closers or self._in_step:
            return first  # a thread that nobody waits for closes the source itself
        return await asyncio.to_thread(self._release) or first

    def _break_off(self) -> BaseException | None:
        """In a thread: make the read in the other thread return, where there is a way."""
        close = self._interrupt
        if close is None:
            close = getattr(self._source, "close", None)
            if close not in self._closers:
                return None  # there is none, or the read has returned
            self._closers.remove(close)
        try:
            close()
        except BaseException as fault:  # noqa: BLE001 - handed to whoever closes
            if self._interrupt is not None:
                return fault
            self._closers.insert(0, close)  # not while it runs: when the read has returned
        return None


class _Room:
    """How many reads a loop does at a time: one less than it has threads, so that a blocked read can be broken off."""

    _rooms: ClassVar[dict[asyncio.AbstractEventLoop, _Room]] = {}  # of the loops that read now

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        threads = getattr(getattr(loop, "_default_executor", None), "_max_workers", None)
        self._free = asyncio.Semaphore(max(1, (threads or min(32, (os.cpu_count() or 1) + 4)) - 1))
        self._users = 0

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Room:
        """That of `loop`."""
        room = cls._rooms.get(loop)
        if room is None:
            room = cls._rooms[loop] = cls(loop)
        return room

    async def acquire(self) -> None:
        """Wait for a thread."""
        self._users += 1
        try:
            await self._free.acquire()
        except BaseException:
            self._leave()
            raise

    def release(self, _work: object = None) -> None:
        """The read is over."""
        self._free.release()
        self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            self._rooms.pop(self._loop, None)


def _nothing() -> None:
    """Asks the loop whether it takes calls from other threads."""
