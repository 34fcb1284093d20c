"""The Commander: the root of a tree, as those see it who run one."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from casework.tasktree.context import HERE, current_node
from casework.tasktree.counters import Counters, exported
from casework.tasktree.errors import AlreadyAttachedError, CommanderNotRunningError, OtherLoopError
from casework.tasktree.handlers import HandlerNode, call, check_handler
from casework.tasktree.job import Job, check_job, submit
from casework.tasktree.mechanics import body_failed, doom_children
from casework.tasktree.node import TaskNode
from casework.tasktree.queue import checked_priority
from casework.tasktree.root import Root
from casework.tasktree.states import SEALED, NodeState
from casework.tasktree.threads import Mailbox

J = TypeVar("J", bound=Job)
H = TypeVar("H", bound=HandlerNode[Any])


class Commander(Root):
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
        max_handlers: how many handlers may run at one time; one that waits for a node does not count meanwhile.
            Without it there is no limit.
        clock: where times and time limits come from, in seconds; the running event loop unless given.
        keep: which nodes stay in the tree when they have ended. `failed` keeps those that ended EXCEPTION, and the
            nodes above them; with `none` a Commander that stays open for years stays small.
        isolate: errors of its children that nobody received do not fail the Commander.
        counters: what `export_counters` gave at the end of an earlier run, which this one goes on from.
        is_cancellation: tells whether an error of a body that is being terminated is only the engine's way to say
            so, and no failure worth reporting.

    Raises:
        OptionError: an option has a value that it cannot have.
    """

    __slots__ = ()

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
            _check_first(job, jobs[:position])
        self._open_up()
        try:
            for job in jobs:
                submit(job, parent=self)
        except BaseException as error:
            body_failed(self, error)
            await self._wind_up(judge=False)
            raise
        return await self._wind_up()

    def run_sync(self, *jobs: Job) -> Any:
        """`run` in an event loop of its own, for scripts.

        Raises:
            OtherLoopError: an event loop runs here already.
            TreeError: as `run`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(*jobs))
        raise OtherLoopError("run_sync() makes an event loop of its own, and one runs here: `await commander.run()`.")

    async def __aenter__(self) -> Self:
        self._open_up()
        self._body = asyncio.current_task()
        self._token = HERE.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        dropped = error is not None and self._lets_go(error)
        self._leave_context()
        body, self._body = self._body, None
        if self._cut and body is not None and not body.uncancel() and isinstance(error, asyncio.CancelledError):
            error = None  # our own cancellation, and no other: the time limit's error says it
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
        if self._state_ is NodeState.ACTIVE:
            self._check_loop(self)
        else:
            raise CommanderNotRunningError("exit() was called on a Commander that does not run.")
        self._stop_if_dropped()
        if self._exited:
            return
        self._exited = True
        self._result_ = result
        self._flags_ |= SEALED
        self._spare_line(HERE.get())
        doom_children(self)

    @property
    def dropped(self) -> int:
        """How many Jobs of this run were ended before their bodies began."""
        return self._dropped

    @property
    def running(self) -> bool:
        """Whether it takes Jobs, or is still ending what it took."""
        return self._state_ is NodeState.ACTIVE

    def export_counters(self) -> Counters:
        """The ordinals given so far, by path: plain data for the Commander of a successor.

        They are those of the Commander and of every node that is open now, whatever was released.
        """
        return exported(self)

    # ---- from other threads

    def submit_threadsafe(self, job: J, parent: TaskNode | None = None, priority: int = 0) -> Future[Any]:
        """`submit`, from any thread; below the Commander unless a `parent` is named.

        The Future gets the result of `job`, or its error; that is no awaiter in the tree, so an error goes up as well.
        Cancelling the Future terminates the Job.

        Raises:
            CommanderNotRunningError: the Commander does not run.
            ThreadsRefusedError: its event loop takes no calls from other threads.
            NotAJobError, OptionError: as `submit`.
        """
        check_job(job)
        checked_priority(priority)
        return self._door().post(job, lambda: submit(job, parent or self, priority))

    def call_threadsafe(self, node: H, parent: TaskNode | None = None) -> Future[Any]:
        """`call`, from any thread; as `submit_threadsafe`.

        Raises:
            CommanderNotRunningError, ThreadsRefusedError: as there.
            NotAHandlerError: as `call`.
        """
        check_handler(node)
        return self._door().post(node, lambda: call(node, parent or self))

    def exit_threadsafe(self, result: Any = None) -> None:
        """`exit`, from any thread; returns at once.

        Raises:
            CommanderNotRunningError, ThreadsRefusedError: as `submit_threadsafe`.
        """
        self._door().tell(lambda: self.exit(result) if self.running else None)

    def _door(self) -> Mailbox:
        mailbox = self._mailbox
        if mailbox is None:
            raise CommanderNotRunningError(f"{self!r} does not run, so it takes no work from other threads.")
        return mailbox


def _check_first(job: Job, earlier: tuple[Job, ...]) -> None:
    check_job(job)
    if job._state_ is not NodeState.PENDING or any(job is other for other in earlier):
        raise AlreadyAttachedError(f"{job!r} was submitted before. A Job has one place in one tree: make a new one.")


def exit_run(result: Any = None) -> None:
    """End the run of the tree that the running node belongs to; see `Commander.exit`.

    Raises:
        NoCurrentNodeError: no node is running here.
    """
    current_node().commander.exit(result)
