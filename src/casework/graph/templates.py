"""Liquid templates over a run's context: strict, single pass, bounded.

A name that is not there is an error (`{{ x | default: "none" }}` asks). Data never becomes a template: what a person or
a model wrote is written out as it is, markers and all. A number is written with all its digits, a datetime in ISO-8601,
a list or object as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any

from casework.errors import ExpressionError
from casework.graph.words import nearest
from casework.values import Plain, clean, plain

MAX_SOURCE = 20_000
"""Longest template, in characters."""
MAX_OPEN = 20
"""Most markers without an end that are read at all."""
MAX_BLANKS = 1000
"""Longest run of blanks and line ends, which the library reads slowly."""
MAX_ARGUMENTS_DEPTH = 20
"""Deepest nesting of a TOOL node's arguments."""

# An argument that is nothing but one path keeps the type of what it names.
_PATH = re.compile(r"\s*\{\{-?\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d{1,6}\])*)\s*-?\}\}\s*")
_WORD = re.compile(r"\w+")
_BLANKS = re.compile(rf"\s{{{MAX_BLANKS + 1}}}")
_PART = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")


@dataclass(frozen=True)
class _Parsed:
    template: Any
    names: frozenset[str]
    paths: tuple[tuple[Any, ...], ...]


def check(source: str, names: Collection[str]) -> None:
    """Refuse a template that does not parse, or uses a name that is neither in `names` nor its own.

    Raises:
        ExpressionError: says where, and lists the names there are.
    """
    unknown = sorted(_parse(source).names - set(names))
    if unknown:
        raise ExpressionError(
            f"{_shown(source)} uses the unknown name {unknown[0]!r}. Known names: {', '.join(sorted(names))}."
            f"{nearest(unknown[0], names)}"
        )


def check_all(arguments: Plain, names: Collection[str]) -> None:
    """`check` for every text in a TOOL node's arguments.

    Raises:
        ExpressionError: as `check`.
    """
    for text in texts(arguments):
        check(text, names)


def paths(source: str) -> tuple[tuple[Any, ...], ...]:
    """The paths into the context that the template uses: names, indexes, and what else it computes, in their order.

    Raises:
        ExpressionError: it does not parse.
    """
    return _parse(source).paths


def texts(arguments: Plain) -> Iterator[str]:
    """Every text in a TOOL node's arguments."""
    if isinstance(arguments, str):
        yield arguments
    for item in _items(arguments):
        yield from texts(item)


def mentioned(arguments: Plain, names: Iterable[str]) -> set[str]:
    """Those of `names` that the texts in `arguments` can use: each that stands in them as a word.

    Nothing is parsed, so it is quick, and may give more than is used; never less, since a name that a template uses is
    written in it. `context` is all of them.
    """
    words = {word for text in texts(arguments) for word in _WORD.findall(text)}
    return set(names) if "context" in words else words.intersection(names)


def render(source: str, context: Mapping[str, Any]) -> str:
    """The text that the template gives over `context`, whose keys are the names there are, and `context` itself.

    Raises:
        ExpressionError: it does not parse, a name is not there, or a limit is reached; says which and where.
    """
    parsed = _parse(source)
    liquid = import_module("casework.graph.liquid")
    names = {**context, "context": context}
    data = {name: _told(names[name], liquid) for name in names if name in parsed.names}
    liquid.BUDGET.set(liquid.Budget())
    try:
        text: str = parsed.template.render(data)
    except Exception as error:  # noqa: BLE001 - whatever the library raises is the template's failure, not ours
        raise ExpressionError(_refusal(source, "fails", error)) from None
    return text


def render_all(arguments: Plain, context: Mapping[str, Any]) -> Plain:
    """A TOOL node's arguments with every text rendered.

    A text that is only one path, as in `"{{ input.amount }}"`, gives the value itself: a number stays a number.

    Raises:
        ExpressionError: as `render`.
    """
    return _render_all(arguments, context, 0)


def _render_all(value: Plain, context: Mapping[str, Any], depth: int) -> Plain:
    if depth > MAX_ARGUMENTS_DEPTH:
        raise ExpressionError(f"Arguments are nested deeper than {MAX_ARGUMENTS_DEPTH}. Flatten them.")
    if isinstance(value, str):
        path = _path(value)
        return render(value, {**context, "context": context}) if path is None else _at(path, value, context)
    if isinstance(value, (dict, Mapping)):  # the first is told at once, the second asks its registry
        return {key: _render_all(item, context, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_render_all(item, context, depth + 1) for item in value]
    return value


@lru_cache(maxsize=1024)
def _path(source: str) -> tuple[str | int, ...] | None:
    """The names and indexes below the context of a text that is only one path; None for any other."""
    match = _PATH.fullmatch(source)
    if match is None:
        return None
    steps = tuple(name or int(index) for name, index in _PART.findall(match[1]))
    return steps[1:] if steps[0] == "context" else steps


def _at(path: tuple[str | int, ...], source: str, context: Mapping[str, Any]) -> Plain:
    found: Any = context
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            raise ExpressionError(f"{_shown(source)} fails: there is no {str(step)!r} in the context.") from None
    return plain(found)


def _items(value: Plain) -> Collection[Plain]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


@lru_cache(maxsize=512)
def _parse(source: str) -> _Parsed:
    if clean(source).replaced:
        raise ExpressionError(f"{_shown(source)} holds a NUL or half a character. Remove it.")
    if len(source) > MAX_SOURCE:
        raise ExpressionError(f"{_shown(source)} has {len(source)} characters; at most {MAX_SOURCE}. Shorten it.")
    _closed(source)
    try:
        template = _environment().from_string(source)
        import_module("casework.graph.liquid").refuse_loose_ranges(template)
        found = template.analyze(include_partials=False)
    except Exception as error:  # noqa: BLE001 - as in `render`
        raise ExpressionError(_refusal(source, "does not parse", error)) from None
    known = _environment().filters
    if unknown := sorted(set(found.filters) - set(known)):
        raise ExpressionError(
            f"{_shown(source)} uses the unknown filter {unknown[0]!r}. Known: {', '.join(sorted(known))}."
            f"{nearest(unknown[0], known)}"
        )
    paths = tuple(tuple(used.segments) for uses in found.globals.values() for used in uses)
    return _Parsed(template, frozenset(found.globals), paths)


def _closed(source: str) -> None:
    if _BLANKS.search(source):
        raise ExpressionError(f"{_shown(source)} has more than {MAX_BLANKS} blanks in a row. Remove some.")
    # The library reads on to the end from every marker that is not closed, which many of them make slow.
    for opening, closing in (("{{", "}}"), ("{%", "%}")):
        after = source.rfind(closing) + 1
        if source.count(opening, after) > MAX_OPEN:
            line = source.count("\n", 0, source.index(opening, after)) + 1
            raise ExpressionError(
                f"{_shown(source)} does not parse at line {line}: {opening} is not closed. Add {closing}."
            )


@lru_cache(maxsize=1)
def _environment() -> Any:
    # Loaded by those who render, not by those who import.
    return import_module("casework.graph.liquid").SealedEnvironment()


def _told(value: Any, liquid: Any) -> Any:
    if isinstance(value, Mapping):
        return liquid.Object({str(key): _told(item, liquid) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [_told(item, liquid) for item in value]
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        return liquid.liquid_numbers.Number(value)
    return value.isoformat() if isinstance(value, date) else value


def _refusal(source: str, what: str, error: Exception) -> str:
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        return f"{_shown(source)} {what}: it is nested too deep. Flatten it."
    place = getattr(error, "context", lambda: None)()
    where = f" at line {place[0]}" if place else ""
    said = import_module("casework.graph.liquid").in_words(error)
    return f"{_shown(source)} {what}{where}: {said}."


def _shown(source: str) -> str:
    return f"Template {source if len(source) <= 200 else source[:200] + '...'!r}"
