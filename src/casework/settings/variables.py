"""A field that is read from an environment variable, and how its text becomes a value."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from casework.errors import SettingsError
from casework.settings.secret import Secret

Part = TypeVar("Part")

SHOWN_LIMIT = 100
"""Characters of a bad value that a message repeats."""

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


@dataclasses.dataclass(frozen=True)
class Variable:
    """Where a field comes from. `at_least` and `at_most` bound a number; `prefixes` are how a text must begin."""

    name: str
    at_least: float | None = None
    at_most: float | None = None
    prefixes: tuple[str, ...] = ()


def variable(name: str, default: Any = None, **bounds: Any) -> Any:
    """A dataclass field read from the environment variable `name`."""
    return dataclasses.field(default=default, metadata={"variable": Variable(name, **bounds)})


def variable_of(field: dataclasses.Field[Any]) -> Variable:
    """The variable a field is read from."""
    found = field.metadata["variable"]
    assert isinstance(found, Variable)
    return found


def read_part(part: type[Part], environ: Mapping[str, str]) -> Part:
    """Build one part from the environment. An empty variable counts as not set.

    Raises:
        SettingsError: a value is not valid; names variable, value and remedy.
    """
    hints = typing.get_type_hints(part)
    given = {}
    for field in dataclasses.fields(part):  # type: ignore[arg-type]  # every part is a dataclass
        source = variable_of(field)
        text = environ.get(source.name, "").strip()
        if text:
            given[field.name] = _value(source, hints[field.name], text)
    return part(**given)


def written_part(part: Any) -> dict[str, str]:
    """The variables that `read_part` would make `part` of; what has its default is left out."""
    written = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value is not None and value != field.default:
            written[variable_of(field).name] = value.reveal() if isinstance(value, Secret) else str(value)
    return written


def _value(source: Variable, hint: Any, text: str) -> Any:
    kind = plain_type(hint)
    if typing.get_origin(kind) is Literal:
        return _choice(source, typing.get_args(kind), text)
    if kind is bool:
        return _flag(source, text)
    if kind in {int, float}:
        return _number(source, kind, text)
    if source.prefixes and not text.startswith(source.prefixes):
        shown = "(hidden)" if kind is Secret else repr(text)
        raise _refusal(source, shown, f"Begin it with {' or '.join(source.prefixes)}")
    return kind(text)


def plain_type(hint: Any) -> Any:
    """`int` of `int | None`, and so on."""
    if isinstance(hint, types.UnionType):
        return next(choice for choice in typing.get_args(hint) if choice is not type(None))
    return hint


def _choice(source: Variable, choices: tuple[str, ...], text: str) -> str:
    if text not in choices:
        raise _refusal(source, repr(text), f"Use one of: {', '.join(choices)}")
    return text


def _flag(source: Variable, text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise _refusal(source, repr(text), "Use true or false")
    return text.lower() in _TRUE


def _number(source: Variable, kind: type[int] | type[float], text: str) -> float:
    wanted = "a whole number" if kind is int else "a number"
    low, high = source.at_least, source.at_most
    remedy = f"Use {wanted}" + (f" from {low:g}" if low is not None else "") + (f" to {high:g}" if high else "")
    try:
        number = kind(text)
    except ValueError:
        raise _refusal(source, repr(text), remedy) from None
    beyond = (low is not None and number < low) or (high is not None and number > high)
    if not math.isfinite(number) or beyond:
        raise _refusal(source, repr(text), remedy)
    return number


def _refusal(source: Variable, shown: str, remedy: str) -> SettingsError:
    if len(shown) > SHOWN_LIMIT:
        shown = f"{shown[:SHOWN_LIMIT]}... ({len(shown)} characters)"
    return SettingsError(f"{source.name} is {shown}, which is not valid. {remedy}.", field=source.name)
