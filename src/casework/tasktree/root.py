"""The root of a tree as the mechanics see it: its queue and slots, and how a run begins and ends."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Generator, Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, ClassVar, cast

from casework.tasktree.callbacks import await_stages, run_stages
from casework.tasktree.context import HERE
from casework.tasktree.counters import checked
from casework.tasktree.errors import CommanderBusyError, EndlessWaitError, NodeTerminatedError, OtherLoopError
from casework.tasktree.job import Job
from casework.tasktree.keeping import Keep, checked_keep
from casework.tasktree.limits import Clock, arm, slots_for
from casework.tasktree.loops import quick_tasks, quick_time
from casework.tasktree.mechanics import (
    body_failed,
    body_over,
    cancel_again,
    doom_children,
    end_stages,
    move,
)
from casework.tasktree.node import TaskNode
from casework.tasktree.queue import JobQueue
from casework.tasktree.states import BODY_OVER, CLOSED, DOOMED, FAILED, ISOLATES, SEALED, SPARED, NodeState, Stage
from casework.tasktree.threads import Mailbox
from casework.tasktree.waits import check_wait, wait_as

if TYPE_CHECKING:
    from casework.tasktree.commander import Commander


Listener = Callable[[TaskNode, Stage], None]
ErrorHook = Callable[[TaskNode, Stage, BaseException], object]


def _caused_by_cancel(error: BaseException) -> bool:
    """Whether `error` is a cancellation, or was raised because of one.

    Told by the name of the class, which asyncio, concurrent.futures and durable engines share without a common base.
    """
    step: BaseException | None = error
    seen: set[int] = set()  # causes may lead in a circle
    while step is not None and type(step).__name__ != "CancelledError" and id(step) not in seen:
        seen.add(id(step))
        step = step.__cause__
    return step is not None and type(step).__name__ == "CancelledError"


class Root(TaskNode):
    """What a Commander is made of. Use `Commander`, which says what each option means."""

    __slots__ = (
        "_aborted",
        "_body",
        "_call_later",
        "_carried",
        "_clock",
        "_create_future",
        "_create_task",
        "_cut",
        "_done",
        "_dropped",
        "_enders",
        "_exited",
        "_first",
        "_is_cancellation",
        "_is_unwinding",
        "_isolate",
        "_keep",
        "_listener",
        "_loop",
        "_mailbox",
        "_max_handlers",
        "_on_callback_error",
        "_passing",
        "_plain",
        "_queue",
        "_slots",
        "_strict",
        "_time",
        "_token",
        "_wrecked",
    )

    _loop: asyncio.AbstractEventLoop
    _is_root_: ClassVar[bool] = True
    _end_stage_: ClassVar[Stage] = Stage.AT_COMMANDER_END

    def __init__(
        self,
        *,
        listener: Listener | None = None,
        is_unwinding: Callable[[], bool] | None = None,
        on_callback_error: ErrorHook | None = None,
        engine_errors: tuple[type[BaseException], ...] = (),
        strict_callbacks: bool = False,
        max_handlers: int | None = None,
        clock: Clock | None = None,
        keep: Keep = "all",
        isolate: bool = False,
        counters: Mapping[str, Mapping[str, int]] | None = None,
        is_cancellation: Callable[[BaseException], bool] = _caused_by_cancel,
    ) -> None:
        self._prepare_("Commander")
        self._commander_ = cast("Commander", self)  # nothing else is made of a Root
        self._listener = listener
        self._is_unwinding = is_unwinding
        self._on_callback_error = on_callback_error
        self._passing = (*engine_errors, KeyboardInterrupt, SystemExit)
        self._strict = strict_callbacks
        self._is_cancellation = is_cancellation
        self._clock = clock
        self._keep = checked_keep(keep)
        self._plain = listener is None and keep == "all"  # nobody is told of a node that just ends
        self._isolate = isolate
        self._max_handlers = max_handlers
        self._slots = slots_for(max_handlers)
        self._carried = checked(counters or {})
        self._counters_ = self._carried.pop("", {})
        self._mailbox: Mailbox | None = None
        self._dropped = 0
        self._exited = False
        self._first: Job | None = None
        self._body: asyncio.Task[Any] | None = None  # whose `async with` it is
        self._wrecked = False  # see _wreck
        self._cut = False  # that task was cancelled by the Commander's own time limit
        self._token: Token[TaskNode | None] | None = None

    # ---- a run, from begin to end

    def _open_up(self) -> None:
        """Begin a run. Nothing of an earlier one stays but the ordinals, so that no path is given twice."""
        if (self._state_ is NodeState.ACTIVE and not self._loop.is_closed()) or (
            self._state_.final and not self._flags_ & CLOSED
        ):
            raise CommanderBusyError(f"{self!r} is running. Wait for its end, or use another Commander.")
        counters, callbacks, before = self._counters_, self._callbacks_, self._rarely_()
        self._prepare_(self._name_)
        self._counters_, self._callbacks_ = counters, callbacks
        self._flags_ = ISOLATES if self._isolate or before.isolates else 0
        rare = self._rarely_()
        rare.data, rare.limit, rare.isolates = before.data, before.limit, before.isolates
        loop = asyncio.get_running_loop()
        clock = self._clock or loop
        self._time, self._call_later = quick_time(clock), clock.call_later
        self._began_, self._ended_ = self._time(), None
        self._create_task = quick_tasks(loop)
        self._create_future = loop.create_future
        self._done: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._mailbox = Mailbox(loop)
        self._queue = JobQueue()
        self._slots = slots_for(self._max_handlers)
        self._enders: dict[int, TaskNode] = {}  # by identity: a class of Jobs may compare its objects in its own way
        self._first = None
        self._dropped = 0
        self._exited = self._cut = self._wrecked = False
        self._aborted: BaseException | None = None
        self._open_ = 1
        move(self, NodeState.ACTIVE)
        if rare.limit is not None:
            arm(self, rare.limit)

    async def _wind_up(self, *, judge: bool = True) -> Any:
        """Wait until all nodes have ended, and end the run. Without `judge` the caller has an error of its own."""
        outer = self._outer()
        try:
            if outer is not None:
                check_wait(outer, self)
        except EndlessWaitError as error:
            body_failed(self, error)
        body_over(self)
        cancelled = await self._all_over(outer)
        cancelled = await self._conclude(cancelled) or cancelled
        try:
            if cancelled is not None:
                raise cancelled
        finally:
            del cancelled  # else error and frame hold each other
        return self._verdict() if judge else None

    def _outer(self) -> TaskNode | None:
        """The node of another tree of this event loop in whose body the Commander runs, if any: it waits for us."""
        here = HERE.get()
        mailbox = here._commander_._mailbox if here is not None and here._commander_ is not self else None
        return here if mailbox is not None and mailbox.loop is asyncio.get_running_loop() else None

    @types.coroutine
    def _until_done(self, outer: TaskNode | None) -> Generator[Any, None, None]:
        yield from (self._done if outer is None else wait_as(outer, self, self._done, receives=False))

    async def _all_over(self, outer: TaskNode | None) -> asyncio.CancelledError | None:
        """Wait for the last node. A cancellation from outside terminates the tree, and is given back for later."""
        cancelled: asyncio.CancelledError | None = None
        while self._open_ and not self._wrecked:
            if self._done.done():
                self._done = self._create_future()  # something began between the last end and now
            try:
                await self._until_done(outer)
            except asyncio.CancelledError as error:
                if self._drops():
                    raise
                if self._done.cancelled():
                    self._done = self._create_future()
                if cancelled is None and not self._flags_ & DOOMED:
                    self._doom_()
                else:
                    cancel_again(self._children_ or [])
                cancelled = error
        return cancelled

    async def _conclude(self, cancelled: asyncio.CancelledError | None) -> asyncio.CancelledError | None:
        """Give the root its final state and run what was kept for the end of the Commander."""
        if self._mailbox is not None:
            self._mailbox.close(f"{self!r} has ended.")
            self._mailbox = None
        self._ended_ = self._time()
        for timer in self._rarely_().timers:
            timer.cancel()
        if cancelled is not None or (self._flags_ & DOOMED and not self._flags_ & FAILED):
            move(self, NodeState.TERMINATED)
        else:
            move(self, NodeState.EXCEPTION if self._flags_ & FAILED else NodeState.COMPLETED)
        if not self._exited and self._first is not None:
            self._result_ = self._first._result_
        self._token = HERE.set(self)
        try:
            return await self._run_end_stages()
        finally:
            self._leave_context()
            self._flags_ |= CLOSED
            for future in self._waiters_ or ():
                if not future.done():
                    future.set_result(None)

    async def _run_end_stages(self) -> asyncio.CancelledError | None:
        """What the nodes kept for the end of the Commander runs before what the Commander itself has for it."""
        before = tuple(stage for stage in end_stages(self) if stage is not Stage.AT_COMMANDER_END)
        cancelled = [await await_stages(self, run_stages(self, before))]
        for node in self._enders.values():
            cancelled.append(await await_stages(node, run_stages(node, (Stage.AT_COMMANDER_END,), tell=False)))
        cancelled.append(await await_stages(self, run_stages(self, (Stage.AT_COMMANDER_END,))))
        return next((error for error in cancelled if error is not None), None)

    def _verdict(self) -> Any:
        """The result of the run, or its error."""
        if self._aborted is not None:
            raise self._aborted
        if self._flags_ & FAILED and self.exception is not None:
            raise self.exception
        if self._state_ is NodeState.TERMINATED:
            raise NodeTerminatedError(f"{self!r} was terminated.")
        return self._result_

    def _leave_context(self) -> None:
        if self._token is not None:
            try:
                HERE.reset(self._token)
            except ValueError:
                # Another context than the one it was opened in: a test fixture's, or that of whatever code was running
                # when this coroutine was thrown away. Only what is ours is taken away there.
                if HERE.get() is self:
                    HERE.set(None)
            self._token = None

    # ---- the queue

    def _enqueue(self, job: Job, priority: int) -> None:
        if self._first is None and job._parent_ is self:
            self._first = job
        self._queue.put(job, priority)

    def _give_back(self, node: TaskNode) -> None:
        if self._slots is not None:
            self._slots.give_back(node)

    # ---- for the mechanics

    def _drops(self) -> bool:
        """Whether the engine is dropping the tree from memory."""
        return self._is_unwinding is not None and self._is_unwinding()

    def _stop_if_dropped(self) -> None:
        """Go no further where the engine is dropping the tree: there is nobody to go on for."""
        if self._drops():
            raise asyncio.CancelledError

    def _check_loop(self, node: TaskNode) -> None:
        """That the running event loop is the one of this tree.

        Raises:
            OtherLoopError: it is another, in another thread.
        """
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if self._mailbox is not None and self._mailbox.loop is not here:
            raise OtherLoopError(
                f"{node!r} runs in the event loop of another thread, so only there it can be awaited and given work. "
                "Use submit_threadsafe or call_threadsafe, and wait for their Future; or send()."
            )

    def _lets_go(self, error: BaseException) -> bool:
        """Whether `error` only means that nobody will run this code any further.

        A coroutine that is thrown away is closed from elsewhere; a body may raise the same error by itself.
        """
        if isinstance(error, GeneratorExit):
            here = HERE.get()
            return here is None or here._commander_ is not self
        return self._drops()

    def _all_ended(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _mended(self, record: Callable[[TaskNode, BaseException], None], node: TaskNode, error: BaseException) -> None:
        """`record(node, error)`; where that fails, by an error that is no error as others are, the run ends."""
        try:
            record(node, error)
        except BaseException as fault:  # noqa: BLE001 - see _wreck
            node._flags_ |= FAILED
            self._wreck(fault)

    def _wreck(self, fault: BaseException) -> None:
        """The mechanics themselves failed, by an object of somebody's that breaks every rule. End the run by `fault`.

        A node may be left without its end; nothing waits for it any more. That is better than a run without an end.
        """
        self._wrecked = True
        self._abort(fault)
        self._all_ended()

    def _cut_off(self, error: BaseException) -> None:
        """The time is over: end the run by `error`, and the body of the `async with`, which is part of it."""
        self._abort(error)
        if self._body is not None and not self._flags_ & BODY_OVER:
            self._cut = self._body.cancel()

    def _abort(self, error: BaseException) -> None:
        """End the run by `error`, whatever the nodes between make of it."""
        if self._aborted is None:
            self._aborted = error
        if self._state_ is NodeState.ACTIVE:
            if not self._flags_ & FAILED:
                self._set_failure_(error)
            self._flags_ |= SEALED | FAILED
            doom_children(self)

    def _doom_(self) -> None:
        if self._state_ is NodeState.ACTIVE:
            self._flags_ |= DOOMED
            doom_children(self)

    def _spare_line(self, caller: TaskNode | None) -> None:
        """Let the caller of exit return in its own way, and its ancestors whose bodies are over end as they would."""
        step = caller if caller is not None and caller._commander_ is self else None
        while step is not None and step is not self:
            if step._state_ is NodeState.ACTIVE and (step is caller or step._flags_ & BODY_OVER):
                step._flags_ |= SPARED
            step = step._parent_

    def _note_ender(self, node: TaskNode) -> None:
        """Remember `node` if it has callbacks for the end of the Commander."""
        if node is not self and node._callbacks_ is not None and node._callbacks_.at(Stage.AT_COMMANDER_END):
            self._enders[id(node)] = node
