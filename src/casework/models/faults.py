"""What goes wrong with a provider, sorted into the classes of errors, without any key in the message.

Passing trouble (RetryableError): 408, 409, 425, 429, 5xx, time-outs, cut connections, an answer that cannot be read.
For good (FatalError): every other 4xx, an exhausted quota, blocked content, an answer cut off by the token limit.
"""

from __future__ import annotations

import os
import re
from typing import Any

from casework.agents import scrub
from casework.errors import FatalError, OperationError, RetryableError, UnserialisableError

_PASSING = frozenset({408, 409, 425, 429})
_REFUSED_ACCESS = frozenset({401, 403})
_SECRETS = re.compile(r"(?i)\b(?:sk|pk|rk|key|api[-_]?key|token|bearer)[-_=: ]+['\"]?[A-Za-z0-9._*\-]{6,}['\"]?")
_SHOWN = 300


def classified(error: Exception, reference: str, key: str | None = None) -> OperationError:
    """The error of this package for one that pydantic-ai or the transport raised.

    Raise it `from None`: the original may hold a part of the key in its text.
    """
    if isinstance(error, OperationError):
        return error
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - loaded by now, and heavy

    said = _said(error, key)
    if isinstance(error, UnserialisableError):
        return FatalError(f"{reference}: its answer cannot be kept: {said}.")
    found: OperationError
    match error:
        case theirs.ModelQuotaExceededError():
            found = FatalError(f"{reference}: the account's quota is used up: {said}. Raise it, or change model.")
        case theirs.ModelHTTPError():
            found = _of_status(error, reference, said)
        case theirs.ModelConnectionError() | theirs.ModelRequestTimeout() | TimeoutError() | OSError():
            found = RetryableError(f"{reference}: no complete answer came: {type(error).__name__}: {said}")
        case theirs.ContentFilterError():
            found = FatalError(f"{reference}: the provider blocked the content: {said}")
        case theirs.IncompleteToolCall():
            found = FatalError(f"{reference}: the token limit cut the answer off. Raise the provider's maxTokens.")
        case theirs.UserError():
            found = FatalError(f"{reference}: {said}")
        case _:
            found = RetryableError(f"{reference}: the answer cannot be used: {type(error).__name__}: {said}")
    return found


def _of_status(error: Any, reference: str, said: str) -> OperationError:
    status = error.status_code
    if status in _PASSING or status >= 500:
        return RetryableError(f"{reference}: HTTP {status}: {said}", retry_after=scrub.delay(error.retry_after))
    if status in _REFUSED_ACCESS:
        # Providers repeat a part of the key here, so nothing they say is repeated.
        return FatalError(f"{reference}: HTTP {status}: access is refused. Check the provider's key and its rights.")
    if status == 404:
        return FatalError(f"{reference}: HTTP 404: no such model or address: {said}. Check both.")
    return FatalError(f"{reference}: HTTP {status}: the request is refused: {said}")


def _said(error: Exception, key: str | None) -> str:
    """What the provider says, in one line, shortened, without the key or anything that looks like one."""
    body = getattr(error, "body", None)
    text = body.get("message") if isinstance(body, dict) else None
    line = " ".join(str(text or scrub.text_of(error)).split())
    # Shortened last: a secret that is cut in two is not found any more.
    return _SECRETS.sub("***", scrub.told(line, os.environ, [key] if key else ()))[:_SHOWN].rstrip(".")
