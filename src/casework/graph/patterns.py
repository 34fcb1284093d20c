"""Patterns of JSON Schemas, matched by RE2: in time that grows with the text, whatever the pattern.

A backtracking engine can be held up for hours by a short text and a pattern such as `^([a-z]+)*$`. RE2 knows no
look-around and no back-references; as in ECMAScript, `\\d`, `\\w` and `\\s` are ASCII. `\\p{L}` is any letter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from casework.errors import ExpressionError
from casework.values import clean

MAX_PATTERN = 1000
"""Longest pattern, in characters."""

# ECMAScript's \uXXXX, where the backslash is not itself escaped; RE2 writes it \x{XXXX}.
_ESCAPE = re.compile(r"\\(u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|.)", re.DOTALL)


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used, or None."""
    if len(pattern) > MAX_PATTERN:
        return f"it has {len(pattern)} characters; at most {MAX_PATTERN}"
    try:
        matches(pattern, "")
    except ExpressionError as error:
        return str(error)
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text, anywhere in it unless it is anchored.

    Raises:
        ExpressionError: it is no pattern of RE2.
    """
    found = _program().eval(data={"text": clean(text).value, "pattern": _of_re2(pattern)})
    if found.type() == _cel().Type.ERROR:
        said = str(found.plain_value()).rpartition("invalid regular expression: ")[2]
        raise ExpressionError(f"{said[:200]} (RE2: no look-around, no back-references)")
    return bool(found.plain_value())


@lru_cache(maxsize=1024)
def _of_re2(pattern: str) -> str:
    def written(match: re.Match[str]) -> str:
        code = match[2] or match[3]
        return f"\\x{{{code}}}" if code else match[0]

    return str(clean(_ESCAPE.sub(written, pattern)).value)


@lru_cache(maxsize=1)
def _program() -> Any:
    cel = _cel()
    environment = cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})
    return environment.compile("text.matches(pattern)")


def _cel() -> Any:
    # Loaded by those who match, not by those who import.
    return import_module("cel_expr_python.cel")
