"""Durations of options: ISO 8601, and what a person meant who writes `10m`."""

from __future__ import annotations

import re

from casework.errors import InputError
from casework.graph.durations import seconds_of
from casework.graph.words import shown

_PART = re.compile(r"\s*([0-9]{1,9})\s*([a-z]*)")
_UNITS = {"d": "D", "h": "H", "m": "M", "s": "S", "": "S"}


def duration(option: str, text: str) -> str:
    """The text of an option, once it is a duration.

    Raises:
        InputError: it is none; says what to write.
    """
    try:
        seconds_of(text)
    except ValueError:
        meant = _meant(text)
        remedy = (
            f"Write {meant}." if meant else "Write weeks, days, hours, minutes and seconds, as in PT15S, PT1H30M, P1D."
        )
        raise InputError(
            f"{option} is {shown(text)}: durations are ISO 8601, from zero to ten years. {remedy}", field=option
        ) from None
    return text


def _meant(text: str) -> str | None:
    """The duration that `10m`, `1h 30 min` or `90` stands for; None for anything else."""
    found, place = dict[str, str](), 0
    while place < len(text) and (part := _PART.match(text.lower(), place)):
        number, unit = part.groups()
        found[_UNITS.get(unit[:1], "")] = f"{int(number)}"
        place = part.end()
    if place < len(text.rstrip()) or not found or "" in found:
        return None
    days = f"{found['D']}D" if "D" in found else ""
    rest = "".join(f"{found[each]}{each}" for each in "HMS" if each in found)
    return f"P{days}{f'T{rest}' if rest else ''}"
