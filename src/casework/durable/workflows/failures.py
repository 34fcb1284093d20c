"""What can go wrong in a visit, as the graph engine and the reader see it."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as EngineTimeoutError

from casework.agents import scrub
from casework.durable import contracts
from casework.durable.segment_contracts import StepFault
from casework.errors import CaseworkError, PayloadUnreadableError, StoreUnavailableError
from casework.values import clean, shortened

GROUP_TOLD = 3
"""Errors of a group that are told."""


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
    """A visit of a graph node ends by this error; an `onError` edge may catch it.

    `outcome` is what the graph engine is told, where that is more than the text.
    """

    def __init__(self, text: str, outcome: Any = None) -> None:
        super().__init__(text)
        self.outcome = outcome


_FATAL = {"FatalError", "ConflictError", "PolicyUnavailableError", "UnserialisableError", "NotFoundError"}


_OURS = (StepFailedError, VisitFailedError, CaseworkError)
"""Errors whose text was written for a reader; what caused them is for the log."""


def _root(error: BaseException) -> BaseException:
    """The first cause, through groups of one. Causes that go round in a circle end where they began."""
    seen: set[int] = set()
    while id(error) not in seen and not isinstance(error, _OURS):
        seen.add(id(error))
        if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        elif error.__cause__ is not None:
            error = error.__cause__
    return error


def only_cancelled(error: BaseException) -> bool:
    """Whether an error is a cancellation and nothing else, also in groups and below the engine's wrapping."""
    if isinstance(error, BaseExceptionGroup):
        return all(only_cancelled(each) for each in error.exceptions)
    return isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error)


def reason_of(error: BaseException | None) -> str:
    """The text of the root failure without the engine's wrapping around it: bounded, and such that it can be stored."""
    seen = None if error is None else _root(error)
    if isinstance(seen, EngineTimeoutError):
        return _timeout_text(seen)
    if isinstance(seen, BaseExceptionGroup) and not isinstance(seen, _OURS):
        return shortened("; ".join(_words(each) for each in seen.exceptions[:GROUP_TOLD]))
    return "" if seen is None else _words(seen)


def _words(error: BaseException) -> str:
    text = error.message if isinstance(error, ApplicationError) else scrub.text_of(error)
    words: str = clean(shortened(text)).value
    return words or type(error).__name__


def _timeout_text(error: EngineTimeoutError) -> str:
    if error.type is TimeoutType.HEARTBEAT:
        return "the worker that ran it was lost (no heartbeat)"
    return f"time-out ({error.type.name.lower() if error.type else 'unknown'})"


def never_started(error: ActivityError) -> bool:
    """Whether the step's time passed in the queue, with no worker to take it: that is no attempt of its own."""
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == contracts.QUEUED_TOO_LONG:
        return True
    if not isinstance(cause, EngineTimeoutError):
        return False
    if cause.type is TimeoutType.SCHEDULE_TO_START:
        return True
    if cause.type is TimeoutType.SCHEDULE_TO_CLOSE:
        return not error.started_event_id
    # The worker was lost, and then none was there until the time over all attempts had passed.
    return cause.type is TimeoutType.HEARTBEAT and error.retry_state is RetryState.TIMEOUT


def lost_with_workers(error: ActivityError) -> bool:
    """Whether the last attempt was lost with its worker. How many of them were begun at all, only the ledger knows: the
    engine counts one that it hands to a worker which is dead already."""
    cause, ends = error.cause, RetryState.MAXIMUM_ATTEMPTS_REACHED
    return isinstance(cause, EngineTimeoutError) and cause.type is TimeoutType.HEARTBEAT and error.retry_state is ends


def store_unavailable(error: ActivityError) -> bool:
    """Whether the step could not reach the database; then nothing was done."""
    cause = error.cause
    return isinstance(cause, ApplicationError) and cause.type == StoreUnavailableError.__name__


def unreadable(error: ActivityError) -> bool:
    """Whether a worker could not read what the step was given, or not keep what it gave: it lacks a key or a blob. What
    was done is in the ledger. The SDK puts an error of its own around the first."""
    causes = (error.cause, None if error.cause is None else error.cause.__cause__)
    return any(isinstance(each, ApplicationError) and each.type == PayloadUnreadableError.__name__ for each in causes)


def timed_out(error: ActivityError) -> bool:
    """Whether the engine ended every attempt: for a step that only writes rows, the database hangs."""
    return isinstance(error.cause, EngineTimeoutError)


def step_failure(path: str, error: ActivityError, *, of_model: bool) -> StepFailedError:
    """The engine's error as ours. What a model refuses for good fails its node, which an `onError` edge may catch."""
    cause = error.cause
    fatal = isinstance(cause, ApplicationError) and cause.type in (_FATAL - {"FatalError"} if of_model else _FATAL)
    return StepFailedError(path, reason_of(error), fatal=fatal)


def told_failure(path: str, fault: StepFault) -> StepFailedError:
    """The same of an attempt that an activity has told of in its answer."""
    error = ApplicationError(fault.text, type=fault.kind)
    return StepFailedError(path, reason_of(error), fatal=fault.kind in _FATAL)


def root_failure(error: BaseException) -> str:
    """The reason written on a FAILED run: kind and text of the root failure."""
    root, reason = _root(error), reason_of(error)
    known = (*_OURS, ApplicationError, EngineTimeoutError)
    return reason if isinstance(root, known) else f"{type(root).__name__}: {reason}"
