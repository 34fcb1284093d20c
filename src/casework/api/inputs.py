"""A run's input against its workflow's input schema, exact to the digit.

JSON Schema numbers are compared as Decimals on both sides: the schema's floats (a YAML `0.01`) become Decimals by
their text, so `multipleOf: 0.01` means cents and 1000.10 is one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from casework.api.body import BODY_LIMIT
from casework.errors import FieldsError, InputError, UnserialisableError
from casework.graph.json_schemas import validator_class
from casework.values import ENTRY_DEPTH, Plain, bounded, shortened

SHOWN = 80
"""Longest value that is repeated in a message, in characters."""


def _is_integer(_: Any, value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, Decimal) and value == value.to_integral_value())


_Validator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]  # the library types it not
    validator_class(), type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
)

_FORMATS = Draft202012Validator.FORMAT_CHECKER
_NO_NETWORK: Registry[Any] = Registry()
"""A schema refers to itself only; without a registry the library would fetch what a `$ref` names."""


def check_bounds(value: Plain, field: str = "input") -> None:
    """Check that a value from outside may travel through rows, history and answers; `field` names it.

    Raises:
        InputError: it is nested too deeply or too large.
    """
    try:
        bounded(value, field, BODY_LIMIT, ENTRY_DEPTH)
    except UnserialisableError as error:
        raise InputError(shortened(str(error), 400), field=field) from None


def check_input(workflow: str, schema: Mapping[str, Any] | None, value: Plain) -> None:
    """Check `value` against `schema`.

    Raises:
        FieldsError: it does not hold; every field is named with what is wrong.
    """
    if not isinstance(value, dict):
        raise FieldsError("The input is not an object.", [{"field": "input", "message": "is not a JSON object"}])
    errors = _errors(schema or {}, value)
    if errors:
        fields = ", ".join(dict.fromkeys(error["field"] for error in errors))
        raise FieldsError(f"The input does not fit workflow {workflow!r}: {fields}.", errors)


def _errors(schema: Mapping[str, Any], value: Plain) -> list[dict[str, str]]:
    try:
        found = list(_Validator(exact(schema), registry=_NO_NETWORK, format_checker=_FORMATS).iter_errors(value))
    except (InvalidOperation, OverflowError):
        return [{"field": "input", "message": "holds a number too large for its schema"}]
    return sorted((line for error in found for line in _lines(error)), key=lambda line: line["field"])


def exact(schema: Any) -> Any:
    """`schema` with its floats as Decimals."""
    if isinstance(schema, float):
        return Decimal(repr(schema))
    if isinstance(schema, Mapping):
        return {key: exact(item) for key, item in schema.items()}
    if isinstance(schema, (list, tuple)):
        return [exact(item) for item in schema]
    return schema


def _lines(error: ValidationError) -> Iterable[dict[str, str]]:
    place = [str(part) for part in error.absolute_path]
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in _several(error.validator_value) if name not in error.instance]
        named = [name for name in missing if repr(name) in error.message] or missing[:1]
        return [{"field": ".".join(["input", *place, name]), "message": "is required"} for name in named]
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [name for name in error.instance if name not in known]
        text = f"is not known; known are {', '.join(known) or 'none'}"
        return [{"field": ".".join(["input", *place, name]), "message": text} for name in extra]
    return [{"field": ".".join(["input", *place]), "message": _message(error)}]


def _message(error: ValidationError) -> str:
    wanted = f"{error.validator} {error.validator_value}"
    texts = {
        "type": f"is not of type {error.validator_value}",
        "enum": f"is none of {', '.join(map(str, _several(error.validator_value)))}",
        "minimum": f"is less than {error.validator_value}",
        "exclusiveMinimum": f"is not more than {error.validator_value}",
        "maximum": f"is more than {error.validator_value}",
        "exclusiveMaximum": f"is not less than {error.validator_value}",
        "minLength": f"is shorter than {error.validator_value} characters",
        "maxLength": f"is longer than {error.validator_value} characters",
        "multipleOf": f"is not a multiple of {error.validator_value}",
        "pattern": f"does not match {error.validator_value}",
    }
    return f"{_shown(error.instance)} {texts.get(str(error.validator), f'does not fit {wanted}')}"


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
