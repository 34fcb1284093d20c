"""One call to the office, and what its answers mean for the engine: again, tell the model, or end the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.errors import FatalError, RetryableError, ToldError
from casework.examples.repeat_safety.settings import OFFICE_URL, office_url
from casework.values import dumps, loads

TIMEOUT = 15.0
"""Seconds for one call, under the deadline of the tools."""
_AGAIN = frozenset({408, 409, 425, 429})


async def ask(method: str, path: str, body: Mapping[str, Any] | None = None, key: str | None = None) -> Any:
    """The answer of the office to one request; None where it has no such thing (404). `key`: an idempotency key.

    Raises:
        RetryableError: it cannot be reached, is busy, or its answer cannot be read.
        ToldError: it refuses.
        FatalError: its address is missing or cannot be used.
    """
    import httpx2  # noqa: PLC0415 - only where there is an office

    url = f"{office_url()}{path}"
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
            answer = await client.request(method, url, content=None if body is None else dumps(body), headers=headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise FatalError(f"{OFFICE_URL} is no usable address ({url}): {error}") from error
    except httpx2.HTTPError as error:
        raise RetryableError(f"The office cannot be reached at {url}: {type(error).__name__}: {error}") from error
    if answer.status_code == 404:
        return None
    if answer.status_code in _AGAIN or answer.status_code >= 500:
        raise RetryableError(f"The office is busy: HTTP {answer.status_code}: {answer.text[:200]}")
    if not answer.is_success:
        raise ToldError(f"The office refuses: HTTP {answer.status_code}: {answer.text[:200]}")
    try:
        return loads(answer.content)
    except ValueError as error:
        raise RetryableError(f"The answer of the office cannot be read: {error}") from error
