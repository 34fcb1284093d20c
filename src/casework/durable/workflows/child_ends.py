"""How a run that another Temporal workflow has started ended, where it did not end by itself."""

from __future__ import annotations

import asyncio

from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

from casework.durable.contracts import RunEnd
from casework.durable.workflows.failures import reason_of
from casework.tasktree import current_node


def end_of(error: ChildWorkflowError) -> RunEnd:
    """The end of the run that the engine reports an error of.

    Raises:
        asyncio.CancelledError: as `refuse_when_ending`.
    """
    refuse_when_ending()
    if is_cancelled_exception(error):
        return RunEnd("CANCELLED", failure="cancelled by the engine's own interface")
    cause = error.cause
    return RunEnd("FAILED", failure=cause.message if isinstance(cause, ApplicationError) else reason_of(error))


def refuse_when_ending() -> None:
    """A node that was told to end does, whatever came back with that.

    Raises:
        asyncio.CancelledError: the running node was told to end.
    """
    if current_node().terminating:
        raise asyncio.CancelledError
