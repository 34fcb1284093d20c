"""What may be said of an error: one bounded text without secrets, and when to come again.

Texts of errors are stored, shown to people and told to models. Drivers and clients put into them what they were given,
addresses with passwords and keys among it. Pure: the caller passes the environment whose secrets are struck.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from casework.errors import OperationError, RetryableError
from casework.values import clean, shortened

LONGEST_DELAY = 300.0
"""Longest time that a peer may ask us to wait, in seconds."""

_STRUCK = "***"
_SHORTEST = 6
"""Shorter values of variables are words like `true` or `1`, and stand in every text."""
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_IN_ADDRESS = re.compile(r"(?<=://)[^\s/?#@:]*:[^\s/?#]*@")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{6,}")
_NAMED = re.compile(
    r"(?i)\b(password|passwd|pwd|secret|api[-_]?key|access[-_]?token)(['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;]+"
)
_KEY_LIKE = re.compile(r"\b[sprk]k[-_][A-Za-z0-9._*\-]{6,}")


def scrubbed(text: str, environment: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
    """`text` without passwords, bearer tokens, keys, `secrets`, and the values of variables that are named as such."""
    for value in sorted({*secrets, *_values(environment)}, key=len, reverse=True):
        text = text.replace(value, _STRUCK)
    text = _IN_ADDRESS.sub(f"{_STRUCK}@", text)
    text = _BEARER.sub(rf"\1 {_STRUCK}", text)
    text = _NAMED.sub(rf"\1\2{_STRUCK}", text)
    return _KEY_LIKE.sub(_STRUCK, text)


def told(text: str, environment: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
    """`text` as it may be stored and shown: scrubbed, cleaned of what a database cannot hold, not too long."""
    # Shortened after the scrubbing: a secret that is cut in two is not found any more.
    return shortened(str(clean(scrubbed(text, environment, secrets)).value))


def mended(error: OperationError, environment: Mapping[str, str]) -> OperationError:
    """`error` itself, of its own class, with what it says made fit to be kept."""
    error.args = (told(str(error), environment),)
    if isinstance(error, RetryableError):
        error.retry_after = delay(error.retry_after)
    return error


def words_of(error: BaseException) -> str:
    """Class and text of an error that may be anything; of a group, those of its parts."""
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__} of " + "; ".join(words_of(part) for part in error.exceptions[:5])
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(error: BaseException) -> str:
    """The text of an error that may be anything."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - whatever its __str__ raises
        return f"its text cannot be read ({type(fault).__name__})"


def delay(seconds: object) -> float | None:
    """The delay that a peer asked for, within 0 and 300 seconds; None where it named none, or no number."""
    try:
        number = None if seconds is None else float(seconds)  # type: ignore[arg-type]  # refused as what it is, below
    except (TypeError, ValueError, OverflowError):
        return None
    if number is None or number != number:  # noqa: PLR0124 - not a number
        return None
    return min(max(number, 0.0), LONGEST_DELAY)


def _values(environment: Mapping[str, str]) -> Iterable[str]:
    for name, value in environment.items():
        if any(word in name.upper() for word in _SECRET_NAMES) and len(value.strip()) >= _SHORTEST:
            yield value.strip()
