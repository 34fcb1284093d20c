"""What may be said of an error: one bounded text without secrets, and when to come again.

Texts of errors are stored, shown to people and told to models. Drivers and clients put into them what they were given,
addresses with passwords and keys among it. Pure: the caller passes the environment whose secrets are struck.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

from casework.agents import named
from casework.errors import OperationError, RetryableError
from casework.values import clean, shortened

LONGEST_DELAY = 300.0
"""Longest time that a peer may ask us to wait, in seconds."""

_STRUCK = "***"
_SHORTEST = 6
"""Shorter values of variables are words like `true` or `1`, and stand in every text."""
_IN_ADDRESS = re.compile(
    r"(?<=://)[^\s/?#@:]{0,200}:(?!\d+(?:[/?#\s]|$))[^\s'\"<>]{0,200}@"
    r"|(?<!http://)(?<!https://)(?<=://)[^\s/?#@:]{0,200}:(?!\d+(?:[/?#\s]|$))(?!\s)[^@\n]{1,80}@"
)
"""User and password of an address. A port is no password; blanks and slashes, which they should not hold, they do."""
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{6,}")
_KEY_LIKE = re.compile(
    r"\b[sprk]k[-_][A-Za-z0-9._*\-]{6,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bgh[opsu]_\w{20,}|\bxox[abprs]-[\w\-]{10,}"
    r"|\beyJ[\w\-]{8,}\.[\w\-]+(?:\.[\w\-]*)?|(?<=hooks\.slack\.com/services/)\S+"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
)


def scrubbed(text: str, environment: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
    """`text` without passwords, bearer tokens, keys, `secrets`, and the values of variables that are named as such."""
    for value in sorted({*secrets, *_values(environment)}, key=len, reverse=True):
        text = text.replace(value, _STRUCK)
    text = _IN_ADDRESS.sub(f"{_STRUCK}@", text)
    text = _BEARER.sub(rf"\1 {_STRUCK}", text)
    return _KEY_LIKE.sub(_STRUCK, named.struck(text, _STRUCK))


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


def _values(environment: Mapping[str, str]) -> Iterator[str]:
    """What must be struck wherever it stands: also as it is written in an address."""
    for name, value in environment.items():
        for secret in _held(name, value.strip()):
            yield from {form for form in (secret, unquote(secret), quote(secret, safe="")) if len(form) >= _SHORTEST}


def _held(name: str, value: str) -> Iterator[str]:
    """The secrets of one variable: all of it, or parts of an address, of a connection string, of a list of headers."""
    if named.is_secret_variable(name, value):
        yield value
    if "HEADERS" in name.upper():
        yield from (pair.partition("=")[2].strip() for pair in value.split(","))
    if "://" in value:
        yield from _of_address(value)
    yield from named.values(value)


def _of_address(value: str) -> Iterator[str]:
    try:
        parts = urlsplit(value)
    except ValueError:
        return
    # A password that says no more than the user or the database does is one of development, and an ordinary word.
    if parts.password and parts.password not in {parts.username, parts.path.strip("/")}:
        yield parts.password
