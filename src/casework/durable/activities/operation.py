"""What all activities share: heartbeats while they last, and errors in the form the engine decides on."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from casework.errors import CaseworkError, RetryableError, StoreUnavailableError
from casework.values import clean, shortened

log = logging.getLogger("casework.worker")

Body = TypeVar("Body", bound=Callable[..., Awaitable[Any]])
BEATS_PER_TIMEOUT = 4
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
    """An activity body with heartbeats and translated errors."""

    @functools.wraps(body)
    async def run(*args: Any) -> Any:
        async with heartbeats():
            try:
                return await body(*args)
            except CaseworkError as error:
                info = activity.info()
                log.warning("run %s: %s, attempt %d: %s", info.workflow_id, info.activity_id, info.attempt, error)
                raise as_failure(error) from None

    return run  # type: ignore[return-value]  # same signature, kept by wraps


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


def _clamped(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
