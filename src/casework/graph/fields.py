"""Types of a manifest's fields that ask more than a form: how each is read, and how an editor is told of it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from casework.graph.durations import MAX_SECONDS, PATTERN, seconds_of
from casework.graph.words import shown

_DIGITS = r"[0-9]+(\.[0-9]+)?"
_URL = "^https?://[^/@]*(/|$)"


def _words(value: Any) -> Any:
    """YAML reads `condition: true` as a truth value; here it is the text."""
    return ("false", "true")[value] if isinstance(value, bool) else value


Condition = Annotated[str, BeforeValidator(_words)]
"""A condition or expression."""


def _duration(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(f"{shown(value)} is no duration: write ISO 8601 as in PT15M or P1DT12H, or seconds")
    seconds_of(Decimal(repr(value)) if isinstance(value, float) else value)
    return value


Duration = Annotated[
    str | int | Decimal,
    BeforeValidator(_duration),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": PATTERN}, {"type": "number", "minimum": 0, "maximum": MAX_SECONDS}]}
    ),
]
"""A length of time: ISO 8601, or seconds."""


def _number(value: Any) -> Any:
    """A number may stand in quotes, which keeps its digits in every YAML; no other text is one."""
    if isinstance(value, str) and not re.fullmatch(_DIGITS, value):
        raise ValueError(f"{shown(value)} is no number: write digits, as in 0.5")
    return value


def _whole(value: Any) -> Any:
    """JSON's 5.0 is a whole number."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


Count = Annotated[int, Field(strict=True), BeforeValidator(_whole)]
"""A whole number."""
Price = Annotated[
    Decimal,
    BeforeValidator(_number),
    Field(ge=0, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{_DIGITS}$"}]}),
]
"""An amount of money, exact."""
Temperature = Annotated[
    Decimal,
    BeforeValidator(_number),
    Field(ge=0, le=2, allow_inf_nan=False),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 2},
                {"type": "string", "pattern": r"^0*([01](\.[0-9]+)?|2(\.0+)?)$"},
            ]
        }
    ),
]
"""How freely a model chooses its words, 0 to 2."""


def _plain_url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("is an address that begins with http:// or https://")
    if not re.match(_URL, value):
        raise ValueError("holds a user or password; name where the key is read from with keyRef instead")
    return value


Address = Annotated[str, AfterValidator(_plain_url), WithJsonSchema({"type": "string", "pattern": _URL})]
"""The address of a server, without a user or password in it."""
