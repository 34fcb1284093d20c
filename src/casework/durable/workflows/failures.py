"""What can go wrong in a visit, as the graph engine and the reader see it."""

from __future__ import annotations

from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutType
from temporalio.exceptions import TimeoutError as EngineTimeoutError

from casework.errors import CaseworkError, StoreUnavailableError


class StepFailedError(Exception):
    """The engine gave a step up: its attempts are used, or the error is not to be retried.

    `fatal` tells a fault that ends the run whatever the graph says (a conflict, an unregistered tool) from one that
    the model is told or an `onError` edge may catch.
    """

    def __init__(self, path: str, reason: str, *, fatal: bool) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason
        self.fatal = fatal


class VisitFailedError(Exception):
    """A visit of a graph node ends by this error; an `onError` edge may catch it."""


_FATAL = {"FatalError", "ConflictError", "PolicyUnavailableError", "UnserialisableError", "NotFoundError"}


_OURS = (StepFailedError, VisitFailedError, CaseworkError)
"""Errors whose text was written for a reader; what caused them is for the log."""


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None and not isinstance(error, _OURS):
        error = error.__cause__
    return error


def reason_of(error: BaseException | None) -> str:
    """The text of the root failure, without the engine's wrapping around it."""
    seen = None if error is None else _root(error)
    if isinstance(seen, EngineTimeoutError):
        return _timeout_text(seen)
    if isinstance(seen, ApplicationError):
        return seen.message
    return "" if seen is None else str(seen) or type(seen).__name__


def _timeout_text(error: EngineTimeoutError) -> str:
    if error.type is TimeoutType.HEARTBEAT:
        return "the worker that ran it was lost (no heartbeat)"
    return f"time-out ({error.type.name.lower() if error.type else 'unknown'})"


def never_started(error: ActivityError) -> bool:
    """Whether the step's time passed in the queue, with no worker to take it: that is no attempt of its own."""
    cause = error.cause
    if not isinstance(cause, EngineTimeoutError):
        return False
    if cause.type is TimeoutType.SCHEDULE_TO_START:
        return True
    if cause.type is TimeoutType.SCHEDULE_TO_CLOSE:
        return not error.started_event_id
    # The worker was lost, and then none was there until the time over all attempts had passed.
    return cause.type is TimeoutType.HEARTBEAT and error.retry_state is RetryState.TIMEOUT


def store_unavailable(error: ActivityError) -> bool:
    """Whether the step could not reach the database; then nothing was done."""
    cause = error.cause
    return isinstance(cause, ApplicationError) and cause.type == StoreUnavailableError.__name__


def step_failure(path: str, error: ActivityError, *, of_model: bool) -> StepFailedError:
    """The engine's error as ours. What a model refuses for good fails its node, which an `onError` edge may catch."""
    cause = error.cause
    fatal = isinstance(cause, ApplicationError) and cause.type in (_FATAL - {"FatalError"} if of_model else _FATAL)
    return StepFailedError(path, reason_of(error), fatal=fatal)


def root_failure(error: BaseException) -> str:
    """The reason written on a FAILED run: kind and text of the root failure."""
    root, reason = _root(error), reason_of(error)
    known = (*_OURS, ApplicationError, EngineTimeoutError)
    return reason if isinstance(root, known) else f"{type(root).__name__}: {reason}"
