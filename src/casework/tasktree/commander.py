"""The Commander: the root of a tree, its queue of Jobs, and how a run begins and ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Token
from types import TracebackType
from typing import Any, ClassVar, Self

from casework.tasktree.callbacks import await_stages, run_stages
from casework.tasktree.context import HERE, current_node
from casework.tasktree.errors import (
    AlreadyAttachedError,
    CommanderBusyError,
    CommanderNotRunningError,
    NodeTerminatedError,
    NotAJobError,
)
from casework.tasktree.job import Job, submit
from casework.tasktree.mechanics import body_failed, body_over, cancel_again, doom_children, end_stages, move
from casework.tasktree.node import TaskNode
from casework.tasktree.states import BODY_OVER, CLOSED, DOOMED, FAILED, SEALED, SPARED, NodeState, Stage

Listener = Callable[[TaskNode, Stage], None]
ErrorHook = Callable[[TaskNode, Stage, BaseException], object]


def _caused_by_cancel(error: BaseException) -> bool:
    """Whether `error` is a cancellation, or was raised because of one.

    Told by the name of the class, which asyncio, concurrent.futures and durable engines share without a common base.
    """
    step: BaseException | None = error
    while step is not None and type(step).__name__ != "CancelledError":
        step = step.__cause__
    return step is not None


class Commander(TaskNode):
    """The root of a task tree. It owns the queue of Jobs; `run` it with the first ones, or keep it open.

    Args:
        listener: told every stage of every node, at once; it must not wait nor do I/O.
        is_unwinding: true while the surrounding engine only drops the tree from memory; then the tree lets go
            of everything without a callback, a word to the listener, or a wait.
        on_callback_error: called with node, stage and error where a callback or the listener fails, or a body fails
            while it is terminated. Without it such errors are logged.
        engine_errors: classes of errors by which the engine controls the code. They are never kept as a
            callback's error, and `run` raises them bare.
        strict_callbacks: an error in a callback fails the node.
        is_cancellation: tells whether an error of a body that is being terminated is only the engine's way to say
            so, and no failure worth reporting.
    """

    __slots__ = (
        "_aborted",
        "_create_future",
        "_create_task",
        "_done",
        "_dropped",
        "_enders",
        "_exited",
        "_first",
        "_head",
        "_is_cancellation",
        "_is_unwinding",
        "_listener",
        "_on_callback_error",
        "_passing",
        "_queue",
        "_strict",
        "_token",
    )

    _is_root: ClassVar[bool] = True
    _end_stage: ClassVar[Stage] = Stage.AT_COMMANDER_END

    def __init__(
        self,
        *,
        listener: Listener | None = None,
        is_unwinding: Callable[[], bool] | None = None,
        on_callback_error: ErrorHook | None = None,
        engine_errors: tuple[type[BaseException], ...] = (),
        strict_callbacks: bool = False,
        is_cancellation: Callable[[BaseException], bool] = _caused_by_cancel,
    ) -> None:
        self._prepare("Commander")
        self._commander = self
        self._listener = listener
        self._is_unwinding = is_unwinding
        self._on_callback_error = on_callback_error
        self._passing = (*engine_errors, KeyboardInterrupt, SystemExit)
        self._strict = strict_callbacks
        self._is_cancellation = is_cancellation
        self._dropped = 0
        self._exited = False
        self._first: Job | None = None
        self._token: Token[TaskNode | None] | None = None

    # ---- running

    async def run(self, *jobs: Job) -> Any:
        """Run `jobs` and all that they start, until every node has ended.

        Returns what was given to `exit`, else the result of the first Job, else None.

        Raises:
            NodeFailedError: an error reached the root; `path` names its node, `__cause__` is the error itself.
            NodeTerminatedError: the Commander itself was terminated.
            CommanderBusyError: it runs already.
            NotAJobError, AlreadyAttachedError: one of `jobs` cannot be submitted; nothing was started.
        """
        for position, job in enumerate(jobs):
            _check_job(job, jobs[:position])
        self._open_up()
        for job in jobs:
            submit(job, parent=self)
        return await self._wind_up()

    def run_sync(self, *jobs: Job) -> Any:
        """`run` in an event loop of its own, for scripts."""
        return asyncio.run(self.run(*jobs))

    async def __aenter__(self) -> Self:
        self._open_up()
        self._token = HERE.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        dropped = error is not None and self._lets_go(error)
        self._leave_context()
        if error is None:
            await self._wind_up()
            return
        if not dropped:
            body_failed(self, error)
            await self._wind_up(judge=False)

    def exit(self, result: Any = None) -> None:
        """End the run in order, with `result`: no new nodes, queued Jobs dropped, running bodies cancelled.

        The node that calls it is cancelled at its next wait; if it returns before, it completes. The first call counts.

        Raises:
            CommanderNotRunningError: there is no run to end.
        """
        if self._state is not NodeState.ACTIVE:
            raise CommanderNotRunningError("exit() was called on a Commander that does not run.")
        self._stop_if_dropped()
        if self._exited:
            return
        self._exited = True
        self._result = result
        self._flags |= SEALED
        self._spare_line(HERE.get())
        doom_children(self)

    @property
    def dropped(self) -> int:
        """How many Jobs of this run were ended before their bodies began."""
        return self._dropped

    @property
    def running(self) -> bool:
        """Whether it takes Jobs, or is still ending what it took."""
        return self._state is NodeState.ACTIVE

    # ---- a run, from begin to end

    def _open_up(self) -> None:
        """Begin a run. Nothing of an earlier one stays but the ordinals, so that no path is given twice."""
        if self._state is NodeState.ACTIVE:
            raise CommanderBusyError(f"{self!r} is running. Wait for its end, or use another Commander.")
        counters, callbacks, data = self._counters, self._callbacks, self.data
        self._prepare(self._name)
        self._counters, self._callbacks = counters, callbacks
        self._rarely().data = data
        loop = asyncio.get_running_loop()
        self._create_task = loop.create_task
        self._create_future = loop.create_future
        self._done: asyncio.Future[None] = loop.create_future()
        self._queue: deque[Job] = deque()
        self._head: Job | None = None
        self._enders: dict[TaskNode, None] = {}
        self._first = None
        self._dropped = 0
        self._exited = False
        self._aborted: BaseException | None = None
        self._open = 1
        move(self, NodeState.ACTIVE)

    async def _wind_up(self, *, judge: bool = True) -> Any:
        """Wait until all nodes have ended, and end the run. Without `judge` the caller has an error of its own."""
        body_over(self)
        cancelled = await self._all_over()
        cancelled = await self._conclude(cancelled) or cancelled
        try:
            if cancelled is not None:
                raise cancelled
        finally:
            del cancelled  # else error and frame hold each other
        return self._verdict() if judge else None

    async def _all_over(self) -> asyncio.CancelledError | None:
        """Wait for the last node. A cancellation from outside terminates the tree, and is given back for later."""
        cancelled: asyncio.CancelledError | None = None
        while self._open:
            try:
                await self._done
            except asyncio.CancelledError as error:
                if self._drops():
                    raise
                if self._done.cancelled():
                    self._done = self._create_future()
                if cancelled is None and not self._flags & DOOMED:
                    self._doom()
                else:
                    cancel_again(self._children or [])
                cancelled = error
        return cancelled

    async def _conclude(self, cancelled: asyncio.CancelledError | None) -> asyncio.CancelledError | None:
        """Give the root its final state and run what was kept for the end of the Commander."""
        if cancelled is not None or (self._flags & DOOMED and not self._flags & FAILED):
            move(self, NodeState.TERMINATED)
        else:
            move(self, NodeState.EXCEPTION if self._flags & FAILED else NodeState.COMPLETED)
        if not self._exited and self._first is not None:
            self._result = self._first._result
        self._token = HERE.set(self)
        try:
            return await self._run_end_stages()
        finally:
            self._leave_context()
            self._flags |= CLOSED
            for future in self._waiters or ():
                if not future.done():
                    future.set_result(None)

    async def _run_end_stages(self) -> asyncio.CancelledError | None:
        """What the nodes kept for the end of the Commander runs before what the Commander itself has for it."""
        before = tuple(stage for stage in end_stages(self) if stage is not Stage.AT_COMMANDER_END)
        cancelled = [await await_stages(self, run_stages(self, before))]
        for node in self._enders:
            cancelled.append(await await_stages(node, run_stages(node, (Stage.AT_COMMANDER_END,), tell=False)))
        cancelled.append(await await_stages(self, run_stages(self, (Stage.AT_COMMANDER_END,))))
        return next((error for error in cancelled if error is not None), None)

    def _verdict(self) -> Any:
        """The result of the run, or its error."""
        if self._aborted is not None:
            raise self._aborted
        if self._flags & FAILED and self.exception is not None:
            raise self.exception
        if self._state is NodeState.TERMINATED:
            raise NodeTerminatedError(f"{self!r} was terminated.")
        return self._result

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

    def _enqueue(self, job: Job) -> None:
        if self._first is None and job._parent is self:
            self._first = job
        self._queue.append(job)
        if self._head is None:
            self._start_next()

    def _next_after(self, job: Job) -> None:
        """`job` gives up its turn, if it has it."""
        if self._head is job:
            self._start_next()

    def _start_next(self) -> None:
        self._head = None
        while self._queue:
            job = self._queue.popleft()
            if not job._flags & BODY_OVER:
                self._head = job
                job._task = self._create_task(job._drive(), context=job._context)
                return

    # ---- for the mechanics

    def _drops(self) -> bool:
        """Whether the engine is dropping the tree from memory."""
        return self._is_unwinding is not None and self._is_unwinding()

    def _stop_if_dropped(self) -> None:
        """Go no further where the engine is dropping the tree: there is nobody to go on for."""
        if self._drops():
            raise asyncio.CancelledError

    def _lets_go(self, error: BaseException) -> bool:
        """Whether `error` only means that nobody will run this code any further.

        A coroutine that is thrown away is closed from elsewhere; a body may raise the same error by itself.
        """
        if isinstance(error, GeneratorExit):
            here = HERE.get()
            return here is None or here._commander is not self
        return self._drops()

    def _all_ended(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _abort(self, error: BaseException) -> None:
        """End the run by `error`, whatever the nodes between make of it."""
        if self._aborted is None:
            self._aborted = error
        if self._state is NodeState.ACTIVE:
            if not self._flags & FAILED:
                self._set_failure(error)
            self._flags |= SEALED | FAILED
            doom_children(self)

    def _doom(self) -> None:
        if self._state is NodeState.ACTIVE:
            self._flags |= DOOMED
            doom_children(self)

    def _spare_line(self, caller: TaskNode | None) -> None:
        """Let the caller of exit return in its own way, and its ancestors whose bodies are over end as they would."""
        step = caller if caller is not None and caller._commander is self else None
        while step is not None and step is not self:
            if step._state is NodeState.ACTIVE and (step is caller or step._flags & BODY_OVER):
                step._flags |= SPARED
            step = step._parent

    def _note_ender(self, node: TaskNode) -> None:
        """Remember `node` if it has callbacks for the end of the Commander."""
        if node is not self and node._callbacks is not None and node._callbacks.at(Stage.AT_COMMANDER_END):
            self._enders[node] = None


def _check_job(job: object, earlier: tuple[Job, ...]) -> None:
    if not isinstance(job, Job):
        raise NotAJobError(f"{job!r} is not a Job. Pass objects of subclasses of Job.")
    if job._state is not NodeState.PENDING or any(job is other for other in earlier):
        raise AlreadyAttachedError(f"{job!r} was submitted before. A Job has one place in one tree: make a new one.")


def exit_run(result: Any = None) -> None:
    """End the run of the tree that the running node belongs to; see `Commander.exit`.

    Raises:
        NoCurrentNodeError: no node is running here.
    """
    current_node().commander.exit(result)
