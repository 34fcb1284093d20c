"""CEL expressions over a run's context.

An expression is compiled against the names it may use and gets only those it does use. An unknown name, a field that
is not there (ask with `has()`), a division by zero or a wrong type is an `ExpressionError`, never a silent false.

Numbers: CEL knows 64-bit integers and doubles. A whole number that fits is an integer. Everything else that has
digits to lose (a Decimal, a float, a larger integer) arrives as text with all its digits, and so does a datetime
(ISO-8601, UTC). Compare exactly with `compare(input.amount, "1000.00") > 0`, which gives -1, 0 or 1; `double(text)`
is there for those who want the rounding.

Bounds: the source is at most 1,000 bytes with at most 8 macros, and one that joins texts inside macros is refused where
it could come to too much, because the runtime limits iterations but not memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib import import_module
from itertools import product
from typing import Any

from casework.errors import ExpressionError, UnserialisableError
from casework.graph.comparisons import INT64, comparison
from casework.graph.words import nearest
from casework.values import ENTRY_DEPTH, Plain, clean, holdable, plain

MAX_SOURCE = 1000
"""Longest expression, in bytes."""
MAX_MACROS = 8
"""Most uses of `all`, `exists`, `exists_one`, `map`, `filter` in one expression."""
MAX_JOINED = 64_000_000
"""Most characters that the texts which an expression joins inside its macros could come to."""
CONTEXT_NAMES = ("input", "review", "errors", "context")
"""Names that every run's context has, beside the outputs of its nodes; `context` is all of it."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"\.\s*(all|exists|exists_one|map|filter)\s*\(")
_UNKNOWN = re.compile(r"undeclared reference to '(\w+)")
_WHERE = re.compile(r"<input>:(\d+):(\d+):\s*(.*)")


def check(source: str, names: Collection[str]) -> None:
    """Refuse an expression that does not parse, uses a name not in `names`, or cannot be a truth value.

    Raises:
        ExpressionError: says where, and lists the names there are.
    """
    found = _compile(source, _used(source, names), names).return_type().name()
    if found not in ("BOOL", "DYN"):
        raise ExpressionError(f"{_shown(source)} gives {found}, not true or false. Compare it with something.")


def check_parses(source: str, names: Collection[str]) -> None:
    """Refuse an expression that does not parse, or uses a name not in `names`; it may give anything.

    Raises:
        ExpressionError: as `check`.
    """
    _compile(source, _used(source, names), names)


def evaluate(source: str, context: Mapping[str, Any]) -> Plain:
    """The value of the expression over `context`, whose keys are the names there are.

    Raises:
        ExpressionError: it does not compile, or its evaluation fails.
    """
    quick = comparison(source)
    if quick is not None and (answer := quick.decided(context)) is not None:
        return answer
    names = {**context, "context": context}
    used = _used(source, names)
    program = _compile(source, used, names)
    data = {name: _told(names[name]) for name in used}
    _refuse_growth(source, data)
    try:
        value = program.eval(data=data)
    except RuntimeError as error:  # what stops an evaluation from outside, as its iteration budget does
        raise ExpressionError(f"{_shown(source)} fails: {error}. Let a tool compute it.") from None
    found = value.plain_value()
    if found is True or found is False:  # nearly all that is asked for, and no error
        return found
    if value.type() == _cel().Type.ERROR:
        said = str(found)
        raise ExpressionError(f"{_shown(source)} fails: {said}.{_advice(said)}")
    return _with_json_form(found, source)


def holds(source: str, context: Mapping[str, Any]) -> bool:
    """Whether the expression is true over `context`.

    Raises:
        ExpressionError: as `evaluate`, and where the value is neither true nor false.
    """
    value = evaluate(source, context)
    if not isinstance(value, bool):
        raise ExpressionError(f"{_shown(source)} gives {value!r:.100}, not true or false. Compare it with something.")
    return value


def value_of(source: str, context: Mapping[str, Any]) -> Plain:
    """As `evaluate`; but an expression that is nothing but a path gives the value itself, so a number stays a number.

    Raises:
        ExpressionError: as `evaluate`.
    """
    path = source.strip().split(".")
    if not all(_IDENTIFIER.fullmatch(name) for name in path):
        return evaluate(source, context)
    found: Any = {**context, "context": context}
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return evaluate(source, context)  # which says what is wrong
        found = found[name]
    return plain(found)


def _with_json_form(found: Any, source: str) -> Plain:
    """The value as plain data, where it can be kept as it is."""
    try:
        made = plain(found)
    except UnserialisableError:
        made = None
    if (made is None and found is not None) or clean(made).replaced:
        raise ExpressionError(
            f"{_shown(source)} gives what JSON does not have, as an infinity, NaN, bytes or a type. "
            "Give texts, finite numbers, lists or objects with texts for keys."
        )
    return made


def _cel() -> Any:
    # Loaded by those who evaluate, not by those who import; it ships stubs without the marker that names them.
    return import_module("cel_expr_python.cel")


def _advice(said: str) -> str:
    if "No matching overload" in said:
        return ' A number with a fraction is text here: compare(x, "0.5") > 0.'
    return " Ask with has() for what may be absent." if "not found" in said else ""


def _used(source: str, names: Collection[str]) -> tuple[str, ...]:
    return tuple([word for word in _words(source) if word in names])


@lru_cache(maxsize=1024)
def _words(source: str) -> tuple[str, ...]:
    # Words inside text literals count too: a name too many is given, none too few.
    return tuple(sorted(set(_IDENTIFIER.findall(source))))


def _compile(source: str, used: tuple[str, ...], known: Collection[str]) -> Any:
    try:
        return _program(source, used)
    except RuntimeError as error:
        raise ExpressionError(_refusal(source, str(error), sorted(known))) from None


@lru_cache(maxsize=1024)
def _program(source: str, used: tuple[str, ...]) -> Any:
    _bounded(source)
    cel = _cel()
    environment = cel.NewEnv(variables=dict.fromkeys(used, cel.Type.DYN), functions=[_compare_declaration()])
    return environment.compile(source)


def _bounded(source: str) -> None:
    if not source.strip():
        raise ExpressionError("An expression is empty. Write a CEL expression, as in: input.amount > 1000")
    if clean(source).replaced:
        raise ExpressionError(f"{_shown(source)} holds a NUL or half a character. Remove it.")
    if (size := len(source.encode())) > MAX_SOURCE:
        raise ExpressionError(f"{_shown(source)} has {size} bytes; at most {MAX_SOURCE}. Let a tool compute it.")
    if (macros := len(_MACRO.findall(source))) > MAX_MACROS:
        raise ExpressionError(f"{_shown(source)} uses {macros} macros; at most {MAX_MACROS}. Let a tool compute it.")


def _refuse_growth(source: str, data: Mapping[str, Any]) -> None:
    """Refuse what may come to more than memory holds.

    Each macro can go through the longest list, and join as often as the whole source does, inside the one before.
    """
    macros, joins = _MACRO.findall(source), source.count("+")
    if not macros or not joins:
        return
    text, items = _longest(data)
    if not text and "map" not in macros and not {"'", '"'} & set(source):
        return  # numbers do not grow, and nothing collects them
    text, items = max(text, len(source)), max(items, source.count(",") + 1)
    if text * (items * (joins + 1)) ** len(macros) > MAX_JOINED:
        raise ExpressionError(
            f"{_shown(source)} could join texts of more than {MAX_JOINED:,} characters over lists of {items} and texts "
            f"of {text}. Let a tool compute it."
        )


def _longest(data: Any) -> tuple[int, int]:
    """The lengths of the longest text and of the longest list or object in a value."""
    text, items, waiting = 0, 0, [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            text = max(text, len(value))
        elif isinstance(value, (Mapping, list, tuple)):
            items = max(items, len(value))
            waiting.extend(value.values() if isinstance(value, Mapping) else value)
    return text, items


def _refusal(source: str, said: str, known: Iterable[str]) -> str:
    match = _WHERE.search(said)
    where, what = (f" at line {match[1]}, column {match[2]}", match[3]) if match else ("", said.split("\n", 1)[0])
    if "undeclared reference" in what:
        names = [*known]
        word = _UNKNOWN.search(what)
        near = nearest(word[1], names) if word else ""
        return f"{_shown(source)} uses an unknown name{where}: {what}. Known names: {', '.join(names)}.{near}"
    return f"{_shown(source)} does not parse{where}: {what}."


def _shown(source: str) -> str:
    return f"Expression {source if len(source) <= 200 else source[:200] + '...'!r}"


def _told(value: Any) -> Any:
    """`value` as CEL is told it (see the module): nothing loses a digit, NUL and half characters are replaced."""
    made = _told_quickly(value, 0)
    return _without_floats(clean(plain(value)).value) if made is _OTHERWISE else made


_OTHERWISE: Any = object()
"""A value that CEL is not told as it is, or may not be."""


def _told_quickly(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is int:
        return value if value in INT64 else _OTHERWISE
    if kind is str:
        return value if holdable(value) else _OTHERWISE
    if value is None or kind is bool:
        return value
    if kind is dict and depth < ENTRY_DEPTH and all(type(key) is str and holdable(key) for key in value):
        members = {key: _told_quickly(item, depth + 1) for key, item in value.items()}
        return _OTHERWISE if _OTHERWISE in members.values() else members
    if kind is list and depth < ENTRY_DEPTH:
        items = [_told_quickly(item, depth + 1) for item in value]
        return _OTHERWISE if _OTHERWISE in items else items
    return _OTHERWISE


def _without_floats(value: Plain) -> Any:
    if isinstance(value, dict):
        return {key: _without_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_floats(item) for item in value]
    return number_text(value)


def number_text(value: Any) -> Any:
    """A number with digits to lose as text, without an exponent; a datetime in ISO-8601; all else as it is."""
    if isinstance(value, (Decimal, float)):
        return format(Decimal(repr(value)) if isinstance(value, float) else value, "f")
    if isinstance(value, int) and not isinstance(value, bool) and value not in INT64:
        return str(value)
    return value.isoformat() if isinstance(value, date) else value


@lru_cache(maxsize=1)
def _compare_declaration() -> Any:
    cel = _cel()
    kinds = {"int": cel.Type.INT, "text": cel.Type.STRING}
    return cel.FunctionDecl(
        "compare",
        [
            cel.Overload(f"compare_{left}_{right}", cel.Type.INT, [kinds[left], kinds[right]], False, _compare)
            for left, right in product(kinds, kinds)
        ],
    )


def _compare(left: Any, right: Any) -> int:
    first, second = _exact(left), _exact(right)
    return (first > second) - (first < second)


def _exact(value: Any) -> Decimal:
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            return number
    raise ValueError(f"compare() takes whole numbers and numbers as text, not {value!r:.50}")
