"""Jobs: units of work that wait in the Commander's queue and whose bodies run one at a time."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import types
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from casework.tasktree.callbacks import await_stages, notify, run_stages
from casework.tasktree.context import HERE
from casework.tasktree.errors import NotAHandlerError, NotAJobError, NotAsyncError, ReservedNameError
from casework.tasktree.handlers import HANDLER_MARK, HandlerNode, placed_under
from casework.tasktree.limits import arm
from casework.tasktree.mechanics import adopt, body_failed, body_over, disown
from casework.tasktree.node import TaskNode
from casework.tasktree.paths import checked_name
from casework.tasktree.queue import checked_priority
from casework.tasktree.states import ABSORBED, CONTINUED, DOOMED, ISOLATES, REFUSES, SPARED, STARTED, NodeState, Stage
from casework.tasktree.waits import check_place

if TYPE_CHECKING:
    from casework.tasktree.limits import Slots
    from casework.tasktree.rare import Rare

_ACTIVE = NodeState.ACTIVE
_PENDING = NodeState.PENDING
_NO_RESULTS = (HandlerNode, types.CoroutineType, types.FunctionType)
J = TypeVar("J", bound="Job")


class Job(TaskNode):
    """Subclass it and write `async def task(self)`; then `submit` an object of the class, once.

    What `task` returns is the Job's result. If that is a call of a handler, the handler continues the Job in the
    Job's own node, outside the queue, and its result is the Job's.

    `class Sum(Job, inline=True)` says that the body only computes, in well under a millisecond: it is written as a
    plain `def task(self)`, waits for nothing, and continues as nothing. Then it needs no asyncio task, which is a third
    of a Job's price. It has its turn as any other has, and all else that a node has.
    """

    __slots__ = ("_context_",)

    _queues_: ClassVar[bool] = True
    _end_stage_: ClassVar[Stage] = Stage.AT_JOB_END
    _inline_: ClassVar[bool] = False
    _context_: contextvars.Context

    def __init_subclass__(cls, *, inline: bool | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inline is not None:
            cls._inline_ = inline
        mixed_in = [base for base in cls.__mro__ if not issubclass(Job, base)]
        own = {name for base in mixed_in for name in (*vars(base), *vars(base).get("__annotations__", {}))}
        own -= {"task", "_inline_"}
        taken = sorted(name for name in own if not name.startswith("__") and hasattr(Job, name))
        if taken:
            raise ReservedNameError(
                f"{cls.__qualname__} has {', '.join(taken)} of its own, which every node has already: the tree "
                "relies on them. Give yours other names."
            )
        _check_body(cls)

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Ready the node here, so that a subclass need not call `super().__init__()`."""
        job = super().__new__(cls)
        # As `_prepare_`, in place: a call of it costs a fiftieth of a Job.
        job._name_ = cls.__name__
        job._state_ = _PENDING
        job._flags_ = 0
        job._parent_ = job._children_ = job._counters_ = job._result_ = job._task_ = None
        job._waiters_ = job._awaits_ = job._callbacks_ = job._rare_ = None
        return job

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self._name_ = name if type(name) is str and name else checked_name(name)

    def task(self) -> Any:
        """The body of the Job: `async def`, or `def` where it is inline. A class without one can only be a base."""
        raise NotImplementedError

    async def _drive_(self) -> None:
        """The asyncio task of the node: its body, from start stage to outcome, then the next Job's turn."""
        self._flags_ |= STARTED
        HERE.set(self)
        commander = self._commander_
        self._began_ = commander._time()
        try:
            if self._rare_ is not None and self._rare_.limit is not None:
                arm(self, self._rare_.limit)
            if self._callbacks_ is not None:
                await await_stages(self, run_stages(self, (Stage.AT_JOB_START,)))
            elif commander._listener is not None:
                notify(self, Stage.AT_JOB_START)
            result = self.task() if self._inline_ else await self.task()
            if result is not None:
                if isinstance(result, HandlerNode) and not self._inline_:
                    result = await self._continue_(result)
                elif isinstance(result, _NO_RESULTS):
                    _check_result(self, result)
                self._result_ = result
        except BaseException as error:  # noqa: BLE001 - every way a body can end is recorded
            if commander._lets_go(error):
                return
            commander._mended(body_failed, self, error)
        self._leave_()

    def _compute_(self) -> None:
        """As `_drive_`, of a body that is inline, for a node that has nothing which might have to be awaited."""
        if self._callbacks_ is not None or self._rare_ is not None:
            self._start_()
            return
        del self._context_
        self._flags_ |= STARTED
        HERE.set(self)
        commander = self._commander_
        self._began_ = commander._time()
        try:
            if commander._listener is not None:
                notify(self, Stage.AT_JOB_START)
            result = self.task()
            if isinstance(result, _NO_RESULTS):
                _check_result(self, result)
            self._result_ = result
        except BaseException as error:  # noqa: BLE001 - every way a body can end is recorded
            if commander._lets_go(error):
                return
            commander._mended(body_failed, self, error)
        self._leave_()

    def _leave_(self) -> None:
        """The body is over: the node ends as soon as it can, and the next Job has its turn."""
        commander = self._commander_
        if commander._is_unwinding is None or not commander._drops():
            try:
                body_over(self)
                commander._queue.next_after(self)
            except BaseException as fault:  # noqa: BLE001 - see _wreck
                commander._wreck(fault)

    async def _continue_(self, node: HandlerNode[Any]) -> Any:
        """Go on as the handler call `node`, out of the queue; if it was called already, wait for it."""
        if self._flags_ & (DOOMED | SPARED):
            raise asyncio.CancelledError
        self._commander_._queue.next_after(self)
        if node._state_ is not _PENDING or node._flags_:
            return await node
        node._flags_ |= ABSORBED
        if node._rare_ is not None:
            self._take_over_(node._rare_)
        if self._commander_._slots is not None:
            await self._slot_(self._commander_._slots)
        callbacks = node._callbacks_
        if callbacks is not None:
            self.merge(callbacks)
            self._flags_ |= CONTINUED
            await await_stages(self, run_stages(self, (Stage.AT_HANDLER_START,)))
        return await node._function_(*node._args_, **node._kwargs_)

    def _take_over_(self, rare: Rare) -> None:
        """What the handler call that continues the Job was told counts for the Job from now on."""
        if rare.limit is not None:
            arm(self, rare.limit)
        if rare.isolates:
            self._flags_ |= ISOLATES
        if rare.data:
            self._rarely_().data.update(rare.data)

    @types.coroutine
    def _slot_(self, slots: Slots) -> Generator[Any, None, None]:
        yield from slots.take(self)

    def _launch_(self) -> None:
        """Start the body soon, in the context that the Job was submitted in."""
        if self._inline_:
            self._task_ = self._commander_._loop.call_soon(self._compute_, context=self._context_)
        else:
            self._start_()

    def _start_(self) -> None:
        context = self._context_
        del self._context_
        body = self._drive_()
        try:
            self._task_ = self._commander_._create_task(body, name=self._name_, context=context)
        except BaseException:
            body.close()
            raise

    def _never_started_(self) -> None:
        self._commander_._dropped += 1
        self._commander_._queue.drop(self)


def _check_body(kind: type[Job]) -> None:
    """That the body of a class of Jobs is of the sort that it declares.

    Raises:
        NotAsyncError: it is not.
    """
    name, body = f"{kind.__qualname__}.task", kind.task
    if body is Job.task:
        return
    if not kind._inline_ and not inspect.iscoroutinefunction(body):
        raise NotAsyncError(f"{name} is not an `async def`. Write `async def task(self)`.")
    if kind._inline_ and (inspect.iscoroutinefunction(body) or inspect.isgeneratorfunction(body)):
        raise NotAsyncError(
            f"{name} is no plain `def`, as that of an inline Job is. Write `def task(self)`, or leave inline out."
        )


def _check_result(job: Job, result: Any) -> None:
    """That what a body returned is not the usual slip of one that means to go on.

    Raises:
        NotAHandlerError: it is a coroutine, a handler that was not called, or one that an inline Job cannot go on as.
    """
    if isinstance(result, HandlerNode):
        what, remedy = repr(result), "Leave inline out, and write `async def task(self)`"
    elif isinstance(result, types.CoroutineType):
        result.close()
        what, remedy = f"the coroutine {result.__qualname__}", "Put @handler on that function, or await it"
    elif hasattr(result, HANDLER_MARK):
        what, remedy = f"the handler {result.__qualname__} itself", "Call it: return what `handler(...)` gives"
    else:
        return
    raise NotAHandlerError(f"the body of {job!r} returned {what}, which nobody would run. {remedy}.")


def check_job(job: object) -> None:
    """That `job` can be submitted as far as its kind goes.

    Raises:
        NotAJobError: it is no object of a subclass of Job.
        NotAsyncError: its class has no `task`.
    """
    if not isinstance(job, Job):
        raise NotAJobError(f"{job!r} is not a Job. Pass an object of a subclass of Job.")
    if type(job).task is Job.task:
        raise NotAsyncError(f"{type(job).__qualname__} has no body. Write `async def task(self)`.")


def submit(job: J, parent: TaskNode | None = None, priority: int = 0) -> J:
    """Queue `job` as a child of the running node, or of `parent`, and return it.

    The higher `priority` has its turn first; among equals, the one that was submitted first.

    Raises:
        NotAJobError, NotAsyncError: `job` is not a Job object, or one without a body.
        NoCurrentNodeError: no node is running and no parent was given.
        AlreadyAttachedError: the same object was submitted before.
        OptionError: `priority` is no whole number.
        EndlessWaitError: the Job whose turn it is waits for the parent, and so would wait for this one.
        TreeError: the parent, or the submitter, has ended or is being ended; the subclass says which.
    """
    if not isinstance(job, Job) or type(job).task is Job.task:
        check_job(job)
    if priority:
        checked_priority(priority)
    here = HERE.get()
    place = here if parent is None and here is not None and not here._flags_ & REFUSES else placed_under(job, parent)
    if place._state_ is _ACTIVE and (head := place._commander_._queue.head) is not None and head._awaits_:
        check_place(place, job, head)
    adopt(place, job)
    job._context_ = contextvars.copy_context()
    try:
        job._commander_._enqueue(job, priority)
    except BaseException:
        job._commander_._queue.forget(job)
        disown(job)  # no more stack or memory: as if it had not been submitted
        raise
    return job
