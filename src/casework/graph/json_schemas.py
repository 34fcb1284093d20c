"""JSON Schemas (draft 2020-12) that manifests carry: whether they hold, and whether a value fits one.

Nothing is fetched: a `$ref` stays inside its schema. Decimals are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from casework.values import Plain, dumps, loads

MAX_DEPTH = 30
"""Deepest nesting of a schema."""
_SHOWN = 200


class Misfit(NamedTuple):
    """Where a value does not fit its schema (`income.monthly[0]`, empty for the whole), and why."""

    field: str
    message: str


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why `schema` is no JSON Schema that can be used here, or None."""
    problem = next(_own_problems(schema, 0), None)
    if problem:
        return problem
    try:
        _library().Draft202012Validator.check_schema(schema)
    except _library().SchemaError as error:
        place = ".".join(str(part) for part in error.path)
        return f"{place + ': ' if place else ''}{error.message:.{_SHOWN}}"
    return None


def misfits(schema: Mapping[str, Any], value: Plain, limit: int = 20) -> list[Misfit]:
    """Where `value` does not fit `schema`, at most `limit` places, in the order of the value."""
    errors = _validator(dumps(schema)).iter_errors(value)
    found = [Misfit(_field(error), _message(error)) for error, _ in zip(errors, range(limit), strict=False)]
    return sorted(found)


def _own_problems(schema: Any, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield f"it is nested deeper than {MAX_DEPTH}"
        return
    if isinstance(schema, Mapping):
        yield from _of_mapping(schema)
    for item in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _own_problems(item, depth + 1)


def _of_mapping(schema: Mapping[str, Any]) -> Iterator[str]:
    reference, pattern = schema.get("$ref"), schema.get("pattern")
    if isinstance(reference, str) and not reference.startswith("#"):
        yield f"$ref {reference!r:.{_SHOWN}} leads outside. Use one that begins with #"
    if isinstance(pattern, str):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"pattern {pattern!r:.{_SHOWN}} does not parse: {error}"


def _field(error: Any) -> str:
    path = [*error.absolute_path]
    if error.validator == "required":
        # There is one such error per missing name, and only its message says which.
        path += [name for name in error.validator_value if error.message.startswith(f"{name!r} ")]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _message(error: Any) -> str:
    return f"{error.message!s:.{_SHOWN}}"


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    library = _library()
    checker = library.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer).redefine("number", _is_number)
    validator = library.validators.extend(library.Draft202012Validator, type_checker=checker)
    # An empty registry: what is not in the schema is not looked for anywhere.
    return validator(loads(schema), registry=import_module("referencing").Registry())


def _is_number(_checker: Any, value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return _is_number(checker, value) and (isinstance(value, int) or value.is_integer())


def _library() -> Any:
    # Loaded by those who check, not by those who import.
    return import_module("jsonschema")
