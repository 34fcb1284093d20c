"""Three classes of errors, never mixed: retry the operation, tell the model, fail the run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.testing import ActivityEnvironment

from casework import errors
from casework.durable import contracts
from casework.durable.activities.operation import as_failure, operation
from casework.durable.workflows.failures import never_started, only_cancelled, reason_of, root_failure, step_failure
from casework.errors import (
    BlankIdError,
    CaseworkError,
    ConflictError,
    FatalError,
    InputError,
    NotFoundError,
    PolicyUnavailableError,
    RetryableError,
    StateError,
    StoreUnavailableError,
    ToldError,
    UnserialisableError,
)
from casework.values import TEXT_LIMIT

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, CaseworkError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_only_passing_trouble_is_retried(kind: type[CaseworkError]) -> None:
    """DA-18. Of all public errors the engine retries RetryableError alone; a database that is away the run waits for.

    Business errors and errors of serialisation are never retried.
    """
    error = kind.__new__(kind)
    Exception.__init__(error, "words")
    if isinstance(error, RetryableError):
        error.retry_after = None
    failure = as_failure(error)
    assert failure.type == kind.__name__
    assert failure.non_retryable is (not issubclass(kind, RetryableError) or issubclass(kind, StoreUnavailableError))


def given_up(error: BaseException) -> ActivityError:
    """The engine's error for a step whose last attempt failed so."""
    made = ActivityError(
        "Activity task failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type="casework.call_tool",
        activity_id="act.1",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    made.__cause__ = error
    return made


@pytest.mark.parametrize(
    ("error", "of_tool", "of_model"),
    [
        (RetryableError("busy"), "told", "node"),
        (ToldError("no"), "told", "node"),
        (StateError("not now"), "told", "node"),
        (InputError("wrong"), "told", "node"),
        (BlankIdError("x", ""), "told", "node"),
        (FatalError("stop"), "run", "node"),
        (ConflictError("other row"), "run", "run"),
        (PolicyUnavailableError("no row"), "run", "run"),
        (UnserialisableError("x", "object"), "run", "run"),
        (NotFoundError("no tool"), "run", "run"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_what_a_given_up_step_does_to_its_run(error: CaseworkError, of_tool: str, of_model: str) -> None:
    """DA-18. The model is told, the node fails (and an `onError` edge may catch it), or the run ends: by the class."""
    for of_model_step, wanted in ((False, of_tool), (True, of_model)):
        failure = step_failure("act.1", given_up(as_failure(error)), of_model=of_model_step)
        assert failure.fatal is (wanted == "run")
        assert failure.reason == str(error)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


class Odd(BaseException):
    pass


LARGE = "x" * 10_000_000


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: KeyError("a bug"), "KeyError: 'a bug'"),
        (Unreadable, "its text cannot be read"),
        (lambda: ValueError(LARGE), "(2,027 characters)"),
        (lambda: ValueError("a\x00b\ud800"), "a\u2400b\ufffd"),
        (lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]), "ValueError: one; KeyError: 'two'"),
        (lambda: Odd("beyond"), "Odd: beyond"),
        (lambda: asyncio.CancelledError("own"), "CancelledError: own"),
        (lambda: RecursionError("too deep"), "too deep"),
    ],
    ids=[
        "bug",
        "unreadable",
        "10 MB",
        "NUL and a half character",
        "group",
        "base exception",
        "own cancel",
        "recursion",
    ],
)
async def test_an_unknown_error_of_an_activity_is_bounded_and_counted(
    make: Callable[[], BaseException], told: str
) -> None:
    """DA-19. Whatever leaves an activity is a failed attempt of which there are few, in words that can be stored."""

    @operation
    async def body() -> None:
        raise make()

    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(body)
    assert told in caught.value.message
    assert len(caught.value.message) < 2 * TEXT_LIMIT
    caught.value.message.encode()
    assert not caught.value.non_retryable
    assert caught.value.__cause__ is None


async def test_the_cancelling_of_an_activity_stays_one() -> None:
    """DA-19. What the engine cancels is cancelled, and no failed attempt."""
    began = asyncio.Event()

    @operation
    async def body() -> None:
        began.set()
        await asyncio.Event().wait()

    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(body))
    await began.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(("waited", "refused"), [(89, False), (91, True)])
async def test_a_step_that_is_taken_too_late_is_not_begun(waited: float, refused: bool) -> None:
    """DA-18. After more than half of its whole time in the queue a step is given back: no attempt, and no half work."""
    begun = []

    @operation
    async def body() -> None:
        begun.append(1)

    environment = ActivityEnvironment()
    now = datetime.now(UTC)
    environment.info = environment.default_info()
    changes: dict[str, Any] = {
        "started_time": now,
        "scheduled_time": now - timedelta(seconds=waited),
        "current_attempt_scheduled_time": now - timedelta(seconds=waited),
        "schedule_to_close_timeout": timedelta(seconds=180),
    }
    for name, value in changes.items():
        object.__setattr__(environment.info, name, value)
    if not refused:
        await environment.run(body)
        assert begun
        return
    with pytest.raises(ApplicationError) as caught:
        await environment.run(body)
    assert caught.value.type == contracts.QUEUED_TOO_LONG
    assert caught.value.non_retryable
    assert not begun
    assert never_started(given_up(caught.value))


def circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def below(error: BaseException) -> Exception:
    wrapped = RuntimeError("around it")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("bug"), "KeyError: 'bug'"),
        (below(given_up(ApplicationError("the root", type="X"))), "the root"),
        (ExceptionGroup("g", [below(ApplicationError("the root"))]), "the root"),
        (ExceptionGroup("g", [ValueError("one"), ValueError("two")]), "ExceptionGroup: one; two"),
        (Unreadable(), "Unreadable: its text cannot be read (ValueError)"),
        (ValueError(LARGE), "(10,000,000 characters)"),
        (ValueError("a\x00b\ud800"), "ValueError: a\u2400b\ufffd"),
        (ValueError(), "ValueError: ValueError"),
        (circle(), "ValueError: first"),
    ],
    ids=["bug", "wrapped", "group of one", "group", "unreadable", "10 MB", "NUL", "empty", "circle"],
)
def test_the_root_failure_is_told_in_words_that_can_be_stored(error: Exception, told: str) -> None:
    """DA-19. The reason of a FAILED run is the root failure's, whatever is around it and whatever it says."""
    reason = root_failure(error)
    assert told in reason
    assert len(reason) < 2 * TEXT_LIMIT
    reason_of(error).encode()


def test_cancellation_stays_cancellation() -> None:
    """DA-19. In groups and below the engine's wrapping too; beside another error it is a failure."""
    cancelled = asyncio.CancelledError()
    assert only_cancelled(cancelled)
    assert only_cancelled(BaseExceptionGroup("g", [cancelled, BaseExceptionGroup("h", [cancelled])]))
    assert not only_cancelled(BaseExceptionGroup("g", [cancelled, ValueError("bug")]))
    assert not only_cancelled(ValueError("bug"))
