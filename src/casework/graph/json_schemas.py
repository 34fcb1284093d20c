"""JSON Schemas (draft 2020-12) that manifests carry: whether they hold, and whether a value fits one.

Nothing is fetched: a `$ref` stays inside its schema. Decimals are numbers. Patterns are matched by RE2 (`patterns`), so
that no value holds up whoever checks it. Whoever checks a value against a schema of a manifest does it by
`validator_class` or `misfits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from casework.errors import ExpressionError
from casework.graph.origins import where
from casework.graph.patterns import matches, pattern_problem
from casework.graph.words import nearest
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
        # Without formats: patterns are judged above, by the engine that will match them.
        _library().Draft202012Validator.check_schema(schema, format_checker=_library().FormatChecker(formats=()))
    except _library().SchemaError as error:
        place = where(tuple(error.path))
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
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        yield f"$ref {reference!r:.{_SHOWN}} leads outside. Use one that begins with #"
    for pattern in _patterns(schema):
        if problem := pattern_problem(pattern):
            yield f"pattern {pattern!r:.{_SHOWN}} does not parse: {problem}"
    if "patternProperties" in schema and "unevaluatedProperties" in schema:
        yield "unevaluatedProperties beside patternProperties is not available. Use additionalProperties"
    yield from _impossible(schema)


def _patterns(schema: Mapping[str, Any]) -> Iterator[str]:
    pattern, of_properties = schema.get("pattern"), schema.get("patternProperties")
    if isinstance(pattern, str):
        yield pattern
    if isinstance(of_properties, Mapping):
        yield from (name for name in of_properties if isinstance(name, str))


def _impossible(schema: Mapping[str, Any]) -> Iterator[str]:
    required, known = schema.get("required"), schema.get("properties", {})
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return
    if isinstance(required, (list, tuple)) and isinstance(known, Mapping):
        for name in required:
            if name not in known:
                yield (
                    f"required names {name!r:.{_SHOWN}}, which is no property, and additionalProperties is false: "
                    f"no value can fit. Correct the name, or add the property.{nearest(name, known)}"
                ).rstrip(".")


def _field(error: Any) -> str:
    path = [*error.absolute_path]
    if error.validator == "required":
        # There is one such error per missing name, and only its message says which.
        path += [name for name in error.validator_value if error.message.startswith(f"{name!r} ")]
    return where(tuple(path))


def _message(error: Any) -> str:
    return f"{error.message!s:.{_SHOWN}}"


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    # An empty registry: what is not in the schema is not looked for anywhere.
    return validator_class()(loads(schema), registry=import_module("referencing").Registry())


@lru_cache(maxsize=1)
def validator_class() -> Any:
    """The library's validator of draft 2020-12 with Decimals as numbers and RE2 for patterns.

    Give it `registry=referencing.Registry()`, else the library fetches what a `$ref` names.
    """
    library = _library()
    checker = library.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer).redefine("number", _is_number)
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return library.validators.extend(library.Draft202012Validator, keywords, type_checker=checker)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not _found(pattern, instance):
        yield _library().ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _found(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [name for name in instance if name not in known and not any(_found(p, name) for p in patterns)]
    if validator.is_type(allowed, "object"):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        named = ", ".join(map(repr, extra))
        were = "was" if len(extra) == 1 else "were"
        yield _library().ValidationError(f"Additional properties are not allowed ({named} {were} unexpected)")


def _found(pattern: str, text: str) -> bool:
    try:
        return matches(pattern, text)
    except ExpressionError:
        return (
            False  # admission refuses such a pattern; a workflow that was pinned before may have it, and nothing fits
        )


def _is_number(_checker: Any, value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return _is_number(checker, value) and (isinstance(value, int) or value.is_integer())


def _library() -> Any:
    # Loaded by those who check, not by those who import.
    return import_module("jsonschema")
