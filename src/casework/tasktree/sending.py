"""A child that another Commander does: in this event loop, or in another thread's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from casework.tasktree.context import current_node
from casework.tasktree.errors import CommanderNotRunningError, NotACommanderError
from casework.tasktree.handlers import HandlerNode, call, handler
from casework.tasktree.job import Job, check_job, submit
from casework.tasktree.mechanics import refusal
from casework.tasktree.queue import checked_priority
from casework.tasktree.states import HOLDS, REFUSES

if TYPE_CHECKING:
    from casework.tasktree.commander import Commander
    from casework.tasktree.node import TaskNode


def send(job: Job, to: Commander, parent: TaskNode | None = None, priority: int = 0) -> HandlerNode[Any]:
    """Queue `job` at the Commander `to`; returns a child of the running node, or of `parent`, that stands for it here.

    The child ends when `job` and all below it have ended, with its result or its error; when it is terminated, `job`
    is terminated too. `to` may run in another thread.

    Raises:
        NotAJobError, OptionError: as `submit`.
        NotACommanderError: `to` is none.
        CommanderNotRunningError, NodeTerminatedError: `to` does not run, or is being ended.
        NoCurrentNodeError, TreeError: there is no node here that takes the child.
    """
    check_job(job)
    checked_priority(priority)
    if not (hasattr(to, "_mailbox") and to._is_root_):
        raise NotACommanderError(f"{to!r} is no Commander. Send the Job to a Commander that runs.")
    if not to.running or to._flags_ & REFUSES:
        raise refusal(to, job)
    return call(_sent(job, to, priority).named(job._name_), parent)


@handler
async def _sent(job: Job, to: Commander, priority: int) -> Any:
    mailbox = to._mailbox
    if mailbox is None:
        raise CommanderNotRunningError(f"{to!r} has ended before it could take {job!r}.")
    if mailbox.loop is asyncio.get_running_loop():
        submit(job, to, priority)
        try:
            return await job
        except asyncio.CancelledError:
            await job.terminate()
            raise
    node = current_node()
    if node._flags_ & HOLDS and (slots := node._commander_._slots) is not None:
        slots.lend(node)  # it waits for another node, and does nothing after that
    answer = asyncio.wrap_future(mailbox.post(job, lambda: submit(job, to, priority), receives=node))
    try:
        return await asyncio.shield(answer)
    except asyncio.CancelledError:
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody else looks at it now
        ended = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(job.terminate(), mailbox.loop))
        await asyncio.shield(ended)
        raise
