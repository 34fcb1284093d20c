"""What all activities share: heartbeats while they last, and errors in the form the engine decides on."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from casework.agents import scrub
from casework.durable import contracts
from casework.durable.segment_contracts import StepFault
from casework.errors import CaseworkError, RetryableError, StoreUnavailableError
from casework.values import clean, shortened

log = logging.getLogger("casework.worker")

Body = TypeVar("Body", bound=Callable[..., Awaitable[Any]])
BEATS_PER_TIMEOUT = 4
TRACE_FRAMES = 8
LONGEST_RETRY_AFTER = 300.0
"""Seconds that a peer may make a step wait; what asks for more is asked again then."""


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Heartbeat in the background, so that a killed worker is noticed in seconds."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat(timeout.total_seconds() / BEATS_PER_TIMEOUT))
    try:
        yield
    finally:
        beating.cancel()


async def _beat(interval: float) -> None:
    while True:
        # First the pause: the time-out counts from the start of the attempt, and each heartbeat costs an engine action.
        await asyncio.sleep(interval)
        activity.heartbeat()


def operation(body: Body) -> Body:
    """An activity body with heartbeats, translated errors, and time enough to end in."""

    @functools.wraps(body)
    async def run(*args: Any) -> Any:
        refuse_when_too_late()
        async with heartbeats():
            try:
                return await body(*args)
            except CaseworkError as error:
                _told(str(error))
                raise as_failure(error) from None
            except ApplicationError:
                raise
            except BaseException as error:
                if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and is_cancelled()):
                    raise
                failure = unknown_failure(error)
                # Where it was raised, and not its own text again, which may be of any size and hold anything.
                _told("\n".join([failure.message, *traceback.format_tb(error.__traceback__)[-TRACE_FRAMES:]]))
                raise failure from None

    return run  # type: ignore[return-value]  # same signature, kept by wraps


def refuse_when_too_late() -> None:
    """Refuse a step that is taken after it has waited for more than half of the time that its attempts have together.

    It would be cut in the middle, and an attempt with it. The run schedules it again, with all of its time.

    Raises:
        ApplicationError: of type `QUEUED_TOO_LONG`; nothing was done.
    """
    info = activity.info()
    whole, waited = info.schedule_to_close_timeout, info.started_time - info.current_attempt_scheduled_time
    if whole and waited > whole / 2:
        text = f"waited {waited.total_seconds():.0f} s of {whole.total_seconds():.0f} s in the queue"
        raise ApplicationError(text, type=contracts.QUEUED_TOO_LONG, non_retryable=True)


def is_cancelled() -> bool:
    """Whether the activity is being cancelled, and not only something inside it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def unknown_failure(error: BaseException) -> ApplicationError:
    """An error that nobody foresaw, in bounded words that can be stored. The engine tries again, a few times."""
    text = scrub.told(scrub.words_of(error), os.environ)
    return ApplicationError(clean(shortened(text)).value, type=type(error).__name__[:100])


def _told(text: str) -> None:
    info = activity.info()
    log.warning("run %s: %s, attempt %d: %s", info.workflow_id, info.activity_id, info.attempt, text)


def as_failure(error: CaseworkError) -> ApplicationError:
    """Our error as the engine's: retried only where its class says so, after the delay that the peer asked for.

    A database that is away is not the engine's to retry, which would use up the attempts of the step: the run waits.

    The error's own text crosses, its cause does not: what a driver or provider says may hold what must not be stored.
    """
    after = error.retry_after if isinstance(error, RetryableError) else None
    return ApplicationError(
        clean(shortened(str(error))).value,
        type=type(error).__name__,
        non_retryable=not error.retryable or isinstance(error, StoreUnavailableError),
        next_retry_delay=None if after is None or not math.isfinite(after) else timedelta(seconds=_clamped(after)),
    )


def fault_of(error: CaseworkError, path: str) -> StepFault:
    """The same of an attempt at `path`, for an activity that goes on and says it in its answer."""
    failure = as_failure(error)
    _told(f"{path}: {error}")
    pause = failure.next_retry_delay
    pause_ms = None if pause is None else pause // timedelta(milliseconds=1)
    return StepFault(failure.type or "", failure.message, failure.non_retryable, pause_ms)


def _clamped(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
