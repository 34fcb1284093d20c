"""Jobs: units of work that wait in the Commander's queue and whose bodies run one at a time."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from typing import Any, ClassVar, Self, TypeVar

from casework.tasktree.callbacks import await_stages, notify, run_stages
from casework.tasktree.context import HERE
from casework.tasktree.errors import NotAJobError, NotAsyncError
from casework.tasktree.handlers import HandlerNode, placed_under
from casework.tasktree.mechanics import adopt, body_failed, body_over
from casework.tasktree.node import TaskNode
from casework.tasktree.paths import checked_name
from casework.tasktree.states import ABSORBED, CONTINUED, DOOMED, SPARED, STARTED, NodeState, Stage

J = TypeVar("J", bound="Job")


class Job(TaskNode):
    """Subclass it and write `async def task(self)`; then `submit` an object of the class, once.

    What `task` returns is the Job's result. If that is a call of a handler, the handler continues the Job in the
    Job's own node, outside the queue, and its result is the Job's.
    """

    __slots__ = ("_context",)

    _end_stage: ClassVar[Stage] = Stage.AT_JOB_END
    _context: contextvars.Context

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not inspect.iscoroutinefunction(cls.task):
            raise NotAsyncError(f"{cls.__qualname__}.task is not an `async def`. Write `async def task(self)`.")

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Ready the node here, so that a subclass need not call `super().__init__()`."""
        job = super().__new__(cls)
        job._prepare(cls.__name__)
        return job

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self._name = checked_name(name)

    async def task(self) -> Any:
        """The body of the Job."""
        raise NotImplementedError(f"{type(self).__qualname__} has no body. Write `async def task(self)`.")

    async def _drive(self) -> None:
        """The asyncio task of the node: its body, from start stage to outcome, then the next Job's turn."""
        self._flags |= STARTED
        HERE.set(self)
        try:
            if self._callbacks is not None:
                await await_stages(self, run_stages(self, (Stage.AT_JOB_START,)))
            elif self._commander._listener is not None:
                notify(self, Stage.AT_JOB_START)
            result = await self.task()
            if isinstance(result, HandlerNode):
                result = await self._continue(result)
            self._result = result
        except BaseException as error:  # noqa: BLE001 - every way a body can end is recorded
            if self._commander._lets_go(error):
                return
            body_failed(self, error)
        if self._commander._is_unwinding is None or not self._commander._drops():
            body_over(self)
            self._commander._next_after(self)

    async def _continue(self, node: HandlerNode[Any]) -> Any:
        """Go on as the handler call `node`, out of the queue; if it was called already, wait for it."""
        if self._flags & (DOOMED | SPARED):
            raise asyncio.CancelledError
        self._commander._next_after(self)
        if node._state is not NodeState.PENDING or node._flags:
            return await node
        node._flags |= ABSORBED
        callbacks = node._callbacks
        if callbacks is not None:
            self.merge(callbacks)
            self._flags |= CONTINUED
            await await_stages(self, run_stages(self, (Stage.AT_HANDLER_START,)))
        return await node._function(*node._args, **node._kwargs)

    def _never_started(self) -> None:
        self._commander._dropped += 1
        self._commander._next_after(self)


def submit(job: J, parent: TaskNode | None = None) -> J:
    """Queue `job` as a child of the running node, or of `parent`, and return it.

    Raises:
        NotAJobError: `job` is not a Job object.
        NoCurrentNodeError: no node is running and no parent was given.
        AlreadyAttachedError: the same object was submitted before.
        TreeError: the parent, or the submitter, has ended or is being ended; the subclass says which.
    """
    if not isinstance(job, Job):
        raise NotAJobError(f"{job!r} is not a Job. Pass an object of a subclass of Job.")
    adopt(placed_under(job, parent), job)
    job._context = contextvars.copy_context()
    job._commander._enqueue(job)
    return job
