"""How long a WAIT node waits: ISO 8601 as in `PT15M`, or seconds."""

from __future__ import annotations

import re
from decimal import Decimal

MAX_SECONDS = 3650 * 86_400
"""Longest wait, ten years of 365 days."""

_PARTS = (("weeks", 604_800), ("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
_ISO = re.compile(
    r"P(?=[\dT])(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)


def seconds_of(duration: str | int | Decimal) -> Decimal:
    """The seconds of a duration.

    Raises:
        ValueError: it is none, is below 0, or is longer than ten years; the text says what to write.
    """
    seconds = _read(duration)
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{duration!r:.60} is no wait from 0 to {MAX_SECONDS} seconds (ten years)")
    return seconds


def _read(duration: str | int | Decimal) -> Decimal:
    if isinstance(duration, str):
        found = _ISO.fullmatch(duration.strip())
        if not found:
            raise ValueError(f"{duration!r:.60} is no duration: write ISO 8601 as in PT15M or P1DT12H, or seconds")
        return sum((Decimal(found[name] or 0) * seconds for name, seconds in _PARTS), Decimal(0))
    number = Decimal(duration)
    if not number.is_finite():
        raise ValueError(f"{duration!r:.60} is no number of seconds")
    return number
