"""How long a WAIT node waits: ISO 8601 as in `PT15M`, or seconds."""

from __future__ import annotations

import re
from decimal import Decimal

from casework.graph.words import shown

MAX_SECONDS = 3650 * 86_400
"""Longest wait, ten years of 365 days."""

_N, _S = "[0-9]{1,9}", r"[0-9]{1,9}(\.[0-9]{1,9})?S"
_DATE, _TIME = f"({_N}W({_N}D)?|{_N}D)", f"T({_N}H({_N}M)?({_S})?|{_N}M({_S})?|{_S})"
PATTERN = rf"^\s*P({_DATE}|({_DATE})?{_TIME})\s*$"
"""How a duration is written, for every dialect of patterns; months and years have no fixed length."""

_UNITS = {"W": 604_800, "D": 86_400, "H": 3600, "M": 60, "S": 1}
_PART = re.compile(r"([0-9.]+)([WDHMS])")


def seconds_of(duration: str | int | Decimal) -> Decimal:
    """The seconds of a duration.

    Raises:
        ValueError: it is none, is below 0, or is longer than ten years; the text says what to write.
    """
    seconds = _read(duration)
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{shown(duration)} is no wait from 0 to {MAX_SECONDS} seconds (ten years)")
    return seconds


def _read(duration: str | int | Decimal) -> Decimal:
    if isinstance(duration, str):
        if not re.match(PATTERN, duration):
            raise ValueError(f"{shown(duration)} is no duration: write ISO 8601 as in PT15M or P1DT12H, or seconds")
        return sum((Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(duration)), Decimal(0))
    number = Decimal(duration)
    if not number.is_finite():
        raise ValueError(f"{shown(duration)} is no number of seconds")
    return number
