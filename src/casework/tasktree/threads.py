"""Work from other threads, and work that another Commander does."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from casework.tasktree.context import HERE
from casework.tasktree.errors import CommanderNotRunningError, EndlessWaitError, ThreadsRefusedError
from casework.tasktree.mechanics import doom

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode


class ThreadFuture(Future[Any]):
    """What a thread waits for. The thread of the tree's own loop cannot wait for it: the loop would stand still."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def result(self, timeout: float | None = None) -> Any:
        """As that of any Future.

        Raises:
            EndlessWaitError: called in the thread of the tree's loop before there is a result.
        """
        self._check_thread()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As that of any Future.

        Raises:
            EndlessWaitError: as `result`.
        """
        self._check_thread()
        return super().exception(timeout)

    def _check_thread(self) -> None:
        if not self.done() and asyncio._get_running_loop() is self._loop:
            raise EndlessWaitError(
                "this Future is waited for in the thread of the event loop that is to do the work, which would stand "
                "still. Await the node, or `asyncio.wrap_future(future)`."
            )


class Mailbox:
    """Where other threads leave work for one run of a Commander. What is left there is answered, also at the end."""

    __slots__ = ("_closed", "_left", "_lock", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._lock = threading.Lock()
        self._left: dict[Future[Any], None] = {}
        self._closed: str | None = None

    def post(self, node: TaskNode, start: Callable[[], TaskNode], *, receives: TaskNode | None = None) -> Future[Any]:
        """Call `start` in the loop's thread; the Future gets what becomes of `node`.

        With `receives` the Future is that node's, and an error is received by it.

        Raises:
            ThreadsRefusedError: the loop takes no calls from other threads.
            CommanderNotRunningError: the run has ended.
        """
        self._check_threads()
        future: Future[Any] = ThreadFuture(self.loop)
        context = contextvars.copy_context()
        context.run(HERE.set, None)  # the node that runs in the calling thread, if any, is of another tree
        with self._lock:
            if self._closed is not None:
                raise CommanderNotRunningError(self._closed)
            self._left[future] = None
            try:
                self.loop.call_soon_threadsafe(self._take, future, node, start, receives, context=context)
            except RuntimeError:
                del self._left[future]
                raise CommanderNotRunningError(f"the event loop is closed, so {node!r} cannot start.") from None
        return future

    def tell(self, act: Callable[[], object]) -> None:
        """Call `act` in the loop's thread.

        Raises:
            ThreadsRefusedError, CommanderNotRunningError: as `post`.
        """
        self._check_threads()
        try:
            self.loop.call_soon_threadsafe(act)
        except RuntimeError:
            raise CommanderNotRunningError("the event loop is closed.") from None

    def _check_threads(self) -> None:
        if type(self.loop).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
            raise ThreadsRefusedError(
                "nothing can be given to this tree from another thread: its event loop takes no such calls, as in a "
                "durable workflow, which could not replay them. Send a signal, or do the work in an activity."
            )

    def close(self, why: str) -> None:
        """The run is over: work that was left and not begun is refused."""
        with self._lock:
            self._closed = why
            left, self._left = list(self._left), {}
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(CommanderNotRunningError(f"{why} The work was not begun."))

    def _take(
        self, future: Future[Any], node: TaskNode, start: Callable[[], TaskNode], receives: TaskNode | None
    ) -> None:
        with self._lock:
            if future not in self._left:
                return
            del self._left[future]
        if future.cancelled():
            future.set_running_or_notify_cancel()  # tells those who wait for it
            return
        try:
            start()
        except Exception as error:  # noqa: BLE001  # it is the other thread that wants to know
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        future.add_done_callback(lambda done: self._cancel(node, done) if done.cancelled() else None)
        node._when_closed_(lambda: _answer(future, node), receives)

    def _cancel(self, node: TaskNode, future: Future[Any]) -> None:
        future.set_running_or_notify_cancel()  # tells those who wait for it
        try:
            self.loop.call_soon_threadsafe(doom, [node])
        except RuntimeError:
            return  # the loop is closed: everything in it has ended


def _answer(future: Future[Any], node: TaskNode) -> None:
    if future.cancelled() or not future.set_running_or_notify_cancel():
        return
    try:
        result = node._outcome_(None)
    except BaseException as error:  # noqa: BLE001  # handed on as it is
        future.set_exception(error)
    else:
        future.set_result(result)
