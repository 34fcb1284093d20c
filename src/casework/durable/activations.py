"""Workflow code on a machine that is slow for a moment: an activation that takes long is waited for, not torn.

An *activation* is one stretch of workflow code, from what has happened to the next wait. The SDK takes one that lasts
over two seconds for a deadlock, cancels its future and evicts the run. It means to wait for the thread first, but what
it waits for is the cancelled future: the eviction runs beside the code that it evicts, wake-ups are lost, the slot
stays taken, and the worker never stops. Two seconds are little: a laptop that wakes up, a burst of compilation beside
the worker, a thousand branches that begin at once on a busy core.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar, Unpack

from temporalio.worker import Worker, WorkerConfig

from casework.durable.queues import QueuesWorker

P = ParamSpec("P")
T = TypeVar("T")

DEADLOCK_S = 8
"""How long an activation may take; below the engine's time-out of a workflow task (10 s), after which nobody waits."""


class Activations(ThreadPoolExecutor):
    """Threads for workflow code, in which a run is never in two at once: what comes for it waits for what is there.

    It waits without a thread: a run whose code never ends keeps one, however often its eviction is asked for.
    """

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="casework-workflow")
        self._waiting: dict[object, deque[Callable[[], None]]] = {}
        """By the run that is in a thread, or has one coming: what is to follow there."""
        self._looking = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn`, a method of the SDK's record of a run, once no other method of that record runs."""
        run = getattr(fn, "__self__", fn)
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # as the executor's own; whoever asked is told
                future.set_exception(error)

        with self._looking:
            if run in self._waiting:
                self._waiting[run].append(work)
                return future
            self._waiting[run] = deque([work])
        super().submit(self._work_off, run)
        return future

    def _work_off(self, run: object) -> None:
        while True:
            with self._looking:
                if not self._waiting[run]:
                    del self._waiting[run]
                    return
                work = self._waiting[run].popleft()
            work()


def patient_worker(threads: int, beside: Sequence[Worker] = (), **config: Unpack[WorkerConfig]) -> Worker:
    """A worker with so many `threads` of this kind, whose activations may each take up to `DEADLOCK_S`.

    It starts and stops with those `beside` it. The rest is what the SDK's `Worker` takes. It has no public option for
    how long.
    """
    config["workflow_task_executor"] = Activations(threads)
    worker = QueuesWorker(**config)
    worker.beside = beside
    workflow_side = worker._workflow_worker
    if workflow_side is not None:
        workflow_side._deadlock_timeout_seconds = DEADLOCK_S
    return worker
