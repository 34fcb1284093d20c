"""What expressions and templates say of a run's input, held against the input schema.

A name is refused only where the schema rules it out: an object that lists its `properties` and has
`additionalProperties: false`. Whatever the schema leaves open is left open here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from casework.graph.words import nearest
from casework.values import loads

Schema = Mapping[str, Any]

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<mark>[<>=!]=|&&|\|\||\S)""",
    re.VERBOSE,
)
_SPECIAL_TEXT = re.compile(r"""\b[rRbB]{1,2}["']|\"{3}|'{3}""")
_REBOUND = re.compile(r"\(\s*(?:input|context)\s*,")
_ARITHMETIC = ("<", "<=", ">", ">=", "+", "-", "*", "/", "%")
_EQUAL = ("==", "!=")
_LIQUID_OWN = ("size", "first", "last")


class _Token(NamedTuple):
    kind: str
    text: str


class _Use(NamedTuple):
    """One use of the input in an expression: the path after `input`, and the tokens around it."""

    path: tuple[str, ...]
    before: Sequence[_Token]
    after: Sequence[_Token]


def expression_problems(source: str, schema: Schema | None) -> Iterator[str]:
    """Where a CEL expression asks for what the input cannot have, or reckons with a number that arrives as text."""
    if schema is None:
        return
    for use in _uses(source):
        if problem := _unknown(use.path, schema):
            yield problem
        elif _may_be_fraction(_at(use.path, schema)) and (operator := _reckoned(use)):
            name = ".".join(("input", *use.path))
            yield (
                f"{operator!r} on {name}, which is of type number: one with a fraction arrives as text. Write "
                f'compare({name}, "1000.00") > 0, or make its type integer'
            )


def template_problems(paths: Iterable[Sequence[Any]], schema: Schema | None) -> Iterator[str]:
    """Where a template asks for what the input cannot have; `paths` are those of the names it uses."""
    if schema is None:
        return
    for path in paths:
        names = list(path[1:] if path and path[0] == "context" else path)
        if names[:1] != ["input"]:
            continue
        asked = names[1:]
        # `size` and the like are the template language's own, at the end of any path.
        own = bool(asked) and asked[-1] in _LIQUID_OWN
        if problem := _unknown(asked[:-1] if own else asked, schema):
            yield problem


def _unknown(path: Sequence[Any], schema: Any) -> str | None:
    for depth, name in enumerate(path):
        if not isinstance(name, str) or not _is_closed(schema):
            return None
        known = schema["properties"]
        if name not in known:
            place = ".".join(("input", *path[:depth]))
            return f"{place} has no {name!r}; it has {', '.join(known) or 'nothing'}.{nearest(name, known)}".rstrip(".")
        schema = known[name]
    return None


def _is_closed(schema: Any) -> bool:
    return (
        isinstance(schema, Mapping)
        and isinstance(schema.get("properties"), Mapping)
        and schema.get("additionalProperties") is False
        and "patternProperties" not in schema
    )


def _at(path: Sequence[str], schema: Any) -> Any:
    for name in path:
        inner = schema.get("properties") if isinstance(schema, Mapping) else None
        schema = inner.get(name) if isinstance(inner, Mapping) else None
    return schema


def _may_be_fraction(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind == "number" or (isinstance(kind, (list, tuple)) and "number" in kind)


def _reckoned(use: _Use) -> str | None:
    """The operator that reckons with this use, or None."""
    sides = (_operator(use.after, 0, 1), _operator(use.before, -1, -2))
    for operator, other in sides:
        if operator in _ARITHMETIC:
            return operator
        if operator in _EQUAL and other is not None and not (other.kind == "text" or other.text == "null"):
            return operator
    return None


def _operator(tokens: Sequence[_Token], first: int, second: int) -> tuple[str, _Token | None]:
    if not tokens:
        return "", None
    return tokens[first].text, tokens[second] if len(tokens) > 1 else None


def _uses(source: str) -> Iterator[_Use]:
    if _SPECIAL_TEXT.search(source) or _REBOUND.search(source):
        return  # raw texts are read otherwise, and a macro's own `input` is not the run's
    tokens = [_Token(str(m.lastgroup), m[0]) for m in _TOKEN.finditer(source) if m.lastgroup != "comment"]
    for at, token in enumerate(tokens):
        if token == ("word", "input") and (not _follows_dot(tokens, at) or _is_of_context(tokens, at)):
            start = at - 2 if _is_of_context(tokens, at) else at
            path, end = _path(tokens, at + 1)
            yield _Use(path, tokens[:start], tokens[end:])


def _follows_dot(tokens: Sequence[_Token], at: int) -> bool:
    return at > 0 and tokens[at - 1].text == "."


def _is_of_context(tokens: Sequence[_Token], at: int) -> bool:
    return _follows_dot(tokens, at) and tokens[at - 2] == ("word", "context") and not _follows_dot(tokens, at - 2)


def _path(tokens: Sequence[_Token], at: int) -> tuple[tuple[str, ...], int]:
    """The names from `at` on, and where they end; a method at the end is none."""
    path: list[str] = []
    while at + 1 < len(tokens):
        if tokens[at].text == "." and tokens[at + 1].kind == "word":
            if tokens[at + 2 : at + 3] == [("mark", "(")]:
                break
            path.append(tokens[at + 1].text)
            at += 2
        elif tokens[at].text == "[" and tokens[at + 1].kind == "text" and tokens[at + 2 : at + 3] == [("mark", "]")]:
            name = _literal(tokens[at + 1].text)
            if name is None:
                break
            path.append(name)
            at += 3
        else:
            break
    return tuple(path), at


def _literal(text: str) -> str | None:
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    try:
        return str(loads(f'"{inner}"'))
    except ValueError:
        return None
