"""Plain values: one rule for what crosses a boundary (PostgreSQL, Temporal, HTTP) and in which form.

- A Decimal is a JSON number with all its digits, in both directions; a JSON number with a fraction is read as
  Decimal, never as float. Floats are written with the digits of their `repr`.
- A datetime is an ISO-8601 instant in UTC; a naive one is refused. UUIDs and enums are their text.
- NUL becomes U+2400 and a lone surrogate U+FFFD, because PostgreSQL holds neither; NaN and the infinities become
  the texts "NaN", "Infinity" and "-Infinity", because JSON has no such numbers; a number of more than 4,000 digits
  becomes its text (an integer in hexadecimal), because not every reader takes it. `clean` counts what it replaced, and
  the row that is written records the count (`cleaned`), so nothing changes in silence and no result is lost.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import simplejson

from casework.errors import UnserialisableError

Plain = Any
"""What JSON can say: None, bool, int, Decimal, float, str, list and dict with text keys, nested."""

_UNHOLDABLE = re.compile("[\x00\ud800-\udfff]")
MAX_DEPTH = 100
"""Deepest nesting of a plain value."""
ENTRY_DEPTH = 64
"""Deepest nesting of a value that comes from outside; the rest is for what is put around it."""
ENTRY_BYTES = 256 * 1024
"""Largest value, as JSON, that goes through a history: an agent's answer, a node's result."""
TEXT_LIMIT = 2_000
"""Longest error text that is kept, in characters."""


_FORM: Mapping[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
_QUICK = json.JSONEncoder(**_FORM)
_EXACT = simplejson.JSONEncoder(**_FORM, use_decimal=True)
_DIGITS_IN_A_ROW = 3600
"""Fewer than any number has that `clean` would replace."""
_LONG = re.compile(rf"(?<!\d)\d{{{_DIGITS_IN_A_ROW}}}")
_SUSPECT = re.compile(rf"\\u0000|[\ud800-\udfff]|{_LONG.pattern}|[eE][+-]?\d{{4}}|NaN|Infinity")
"""What JSON text may show of a value that `clean` would change."""
_SIMPLE = frozenset({type(None), bool, str, int, float, Decimal})
_NESTED = frozenset({dict, list, tuple})
MAX_DIGITS = 4000
"""Most digits of a number; integers are bounded by bits, at three of them for a digit."""


_KINDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text"}


class Cleaned(NamedTuple):
    """A value that PostgreSQL can hold, and how many replacements that took."""

    value: Plain
    replaced: int


class Sized(NamedTuple):
    """A plain value, and how many bytes it has as JSON."""

    value: Plain
    size: int


def plain(value: Any, field: str = "value") -> Plain:
    """`value` as plain data: dataclasses, pydantic models, tuples and sets become dicts and lists.

    Raises:
        UnserialisableError: a part of it has no plain form; names the field and the type.
    """
    return _plain(value, field, 0)


def _plain(value: Any, field: str, depth: int) -> Plain:
    kind = type(value)
    if kind in _SIMPLE:  # nearly all that is met; the tests below cost ten times as much
        return value
    if kind not in _NESTED:
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, (bool, str, int, float, Decimal)):
            return value
        as_text = _text_form(value, field)
        if as_text is not None:
            return as_text
    if depth > MAX_DEPTH:
        raise UnserialisableError(field, f"nesting deeper than {MAX_DEPTH}", "Flatten it.")
    return _container(value, field, depth + 1)


def _text_form(value: Any, field: str) -> str | None:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return instant(value, field)
    return value.isoformat() if isinstance(value, date) else None


def _container(value: Any, field: str, depth: int) -> Plain:
    if isinstance(value, Mapping):
        return _named(((_key(key, field), item) for key, item in value.items()), field, depth)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{field}[{i}]", depth) for i, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, field, depth) for item in value), key=dumps)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _named(((f.name, getattr(value, f.name)) for f in dataclasses.fields(value)), field, depth)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _plain(dump(by_alias=True), field, depth)
    raise UnserialisableError(field, type(value).__name__)


def _named(parts: Iterable[tuple[str, Any]], field: str, depth: int) -> Plain:
    """Parts by name; the name of a simple one is not made, since nothing can be wrong with it."""
    return {name: item if type(item) in _SIMPLE else _plain(item, f"{field}.{name}", depth) for name, item in parts}


def _key(key: Any, field: str) -> str:
    if type(key) is str:
        return key
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, (str, UUID)):
        return str(key)
    raise UnserialisableError(f"{field} (a key)", type(key).__name__)


def instant(value: datetime, field: str = "value") -> str:
    """The UTC instant of an aware datetime, ISO-8601 with microseconds.

    Raises:
        UnserialisableError: the datetime has no time zone, or UTC's years do not hold it.
    """
    if value.tzinfo is None:
        raise UnserialisableError(field, "datetime without time zone")
    try:
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:
        raise UnserialisableError(field, "datetime outside of the years 1 to 9999 in UTC") from None


def holdable(text: str) -> bool:
    """Whether `clean` would leave the text as it is."""
    return _UNHOLDABLE.search(text) is None


def clean(value: Plain) -> Cleaned:
    """`value` without the characters and numbers that PostgreSQL cannot hold (see the module)."""
    if isinstance(value, str):
        text, count = _UNHOLDABLE.subn(lambda m: "\u2400" if m[0] == "\x00" else "\ufffd", value)
        return Cleaned(text, count)
    if isinstance(value, (int, float, Decimal)):
        return _clean_number(value)
    if isinstance(value, dict):
        return _clean_mapping(value)
    if isinstance(value, list):
        items = [clean(item) for item in value]
        return Cleaned([item.value for item in items], sum(item.replaced for item in items))
    return Cleaned(value, 0)


def _clean_mapping(value: dict[str, Plain]) -> Cleaned:
    made: dict[str, Plain] = {}
    replaced = 0
    # Keys that need no cleaning keep their name; a cleaned key that clashes gets a suffix, so that both stay.
    for key in sorted(value, key=lambda key: clean(key).replaced):
        name, item = clean(key), clean(value[key])
        replaced += name.replaced + item.replaced
        label, number = name.value, 2
        while label in made:
            label, number = f"{name.value}~{number}", number + 1
        made[label] = item.value
    return Cleaned(made, replaced)


def _clean_number(value: float | Decimal) -> Cleaned:
    if isinstance(value, int):
        return Cleaned(value, 0) if value.bit_length() <= MAX_DIGITS * 3 else Cleaned(hex(value), 1)
    number = value if isinstance(value, Decimal) else Decimal(value)  # math's own tests go through float, and overflow
    if number.is_nan():
        return Cleaned("NaN", 1)
    if number.is_infinite():
        return Cleaned("Infinity" if number > 0 else "-Infinity", 1)
    return Cleaned(value, 0) if _written_digits(number) <= MAX_DIGITS else Cleaned(str(value), 1)


def _written_digits(value: Decimal) -> int:
    """How many digits the number has when written without an exponent."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # finite
    return max(value.adjusted(), 0) - min(exponent, 0)


def dumps(value: Any) -> str:
    """The canonical JSON of `value`: cleaned, keys sorted, no spaces, Decimals with all their digits.

    Raises:
        UnserialisableError: a part of it has no plain form.
    """
    return text_of(plain(value))


def text_of(value: Plain) -> str:
    """The same of a value that is plain already."""
    return unchanged(value) or _EXACT.encode(clean(value).value)


def unchanged(value: Plain) -> str | None:
    """The canonical JSON of a plain value that is read back as it is; None where `clean` would replace some of it.

    It may be None for others too: for what has no plain form, and for texts that only look odd.
    """
    return _quickly(value) or _exactly(value)


def _quickly(made: Plain) -> str | None:
    """The same text by the standard library's encoder, ten times as fast; None where it may be another text.

    It knows no Decimal, and what `clean` would replace is looked for in the text, not in each value.
    """
    try:
        text = _QUICK.encode(made)
        text.encode()
    except (TypeError, ValueError):  # a Decimal; a number that JSON does not have, or a lone surrogate
        return None
    odd = "\\u0000" in text or "\u2028" in text or "\u2029" in text
    return None if odd or (len(text) > _DIGITS_IN_A_ROW and _LONG.search(text)) else text


def _exactly(made: Plain) -> str | None:
    """The same text where there are Decimals in it; None where `clean` may change something."""
    try:
        text = _EXACT.encode(made)
    except (TypeError, ValueError):  # no plain value; a number that JSON does not have
        return None
    return None if _SUSPECT.search(text) else text


def loads(text: str | bytes) -> Plain:
    """The plain value of a JSON text; numbers with a fraction are Decimals.

    Raises:
        ValueError: not JSON; NaN and Infinity are not JSON.
    """
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode(json.detect_encoding(text)))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _exact(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"{digits[:50]} is out of the range of numbers") from None


def _no_number(name: str) -> Plain:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_float=_exact, parse_constant=_no_number)


def settled(value: Any) -> Plain:
    """`value` as it is read back where it is written: `loads(dumps(value))`, a copy that shares nothing with it.

    Raises:
        UnserialisableError: as `dumps`.
    """
    made = _settled(value, 0)
    return loads(dumps(value)) if made is _OTHERWISE else made


_OTHERWISE: Any = object()
"""A value that JSON changes, or may."""


def _settled(value: Any, depth: int) -> Any:
    """A copy of what comes through JSON as it went in, and `_OTHERWISE` for all else."""
    kind = type(value)
    if kind is str:
        return value if holdable(value) else _OTHERWISE
    if kind is int:
        return value if value.bit_length() <= _DIGITS_IN_A_ROW else _OTHERWISE
    if value is None or kind is bool:
        return value
    if depth > ENTRY_DEPTH:
        return _OTHERWISE
    if kind is list:
        items = [_settled(item, depth + 1) for item in value]
        return _OTHERWISE if _OTHERWISE in items else items
    return _settled_object(value, depth + 1) if kind is dict else _OTHERWISE


def _settled_object(value: dict[Any, Any], depth: int) -> Any:
    if not all(type(key) is str and holdable(key) for key in value):
        return _OTHERWISE
    made = {key: _settled(value[key], depth) for key in sorted(value)}
    return _OTHERWISE if _OTHERWISE in made.values() else made


def bounded(value: Any, field: str, limit: int = ENTRY_BYTES, depth: int = ENTRY_DEPTH) -> Plain:
    """`value` as plain data, if it is small enough to travel: into a history, a row, an answer, and out again.

    Raises:
        UnserialisableError: it is larger than `limit` bytes as JSON, nested deeper than `depth`, or has no plain form.
    """
    return sized(value, field, limit, depth).value


def sized(value: Any, field: str, limit: int, depth: int = ENTRY_DEPTH) -> Sized:
    """As `bounded`, with its size.

    Raises:
        UnserialisableError: as `bounded`.
    """
    made = plain(value, field)
    if _deeper(made, depth):
        raise UnserialisableError(field, f"nesting deeper than {depth}", "Flatten it.")
    size = len(text_of(made).encode())
    if size > limit:
        found = f"{_KINDS.get(type(made), 'a value')} of {size:,} bytes, over the limit of {limit:,}"
        raise UnserialisableError(field, found, "Make it smaller, or keep it elsewhere and say where.")
    return Sized(made, size)


def _deeper(value: Plain, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    return levels == 0 or any(
        _deeper(item, levels - 1) for item in (value.values() if isinstance(value, dict) else value)
    )


class TwiceError(ValueError):
    """A key stands twice in one object: of two values JSON readers take one or the other, so neither may count."""

    def __init__(self, key: str) -> None:
        self.key = key[:100]
        super().__init__(f"names the key {self.key!r} twice in one object")


def loads_once(text: str | bytes) -> Plain:
    """As `loads`, for what people and their programs send.

    Raises:
        TwiceError: a key stands twice in one object.
        ValueError: it is not JSON.
    """
    value = loads(text)
    json.loads(text, object_pairs_hook=_once, parse_float=str, parse_int=str)
    return value


def _once(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    made: dict[str, Plain] = {}
    for key, value in pairs:
        if key in made:
            raise TwiceError(key)
        made[key] = value
    return made


def shortened(text: str, limit: int = TEXT_LIMIT) -> str:
    """`text` as a reader needs it: what is longer than `limit` characters is cut, saying how long it was."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()
