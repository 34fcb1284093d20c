"""From a function's signature to the JSON Schema of its arguments, and from arguments back to typed values.

Fields carry their public name as alias, so that a parameter may be called `schema` or `copy` without meeting a method
of the model class behind it.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import DecimalSchema

from casework.errors import ToldError, ToolDeclarationError
from casework.values import Plain

_SHOWN = 80
"""Longest part of a wrong value that an error repeats, in characters."""


class _NumbersAreNumbers(GenerateJsonSchema):
    """A Decimal is a JSON number to the model, not a choice of number and pattern."""

    def decimal_schema(self, schema: DecimalSchema) -> JsonSchemaValue:
        json_schema: JsonSchemaValue = {"type": "number"}
        for name, keyword in (
            ("ge", "minimum"),
            ("gt", "exclusiveMinimum"),
            ("le", "maximum"),
            ("lt", "exclusiveMaximum"),
        ):
            limit = schema.get(name)
            if isinstance(limit, (int, Decimal)):
                json_schema[keyword] = limit
        return json_schema


@dataclass(frozen=True)
class Signature:
    """The parameters of a tool: names, the model that checks them, their JSON Schema, whether a context comes first."""

    names: tuple[str, ...]
    model: type[BaseModel]
    parameters: Plain
    takes_context: bool
    fields: tuple[str, ...]
    """What the model calls the parameters, in their order."""

    def bind(self, tool: str, arguments: Plain) -> dict[str, Any]:
        """Typed keyword arguments.

        Raises:
            ToldError: `arguments` is no object or does not fit.
        """
        if not isinstance(arguments, (dict, Mapping)):
            raise ToldError(
                f"{tool}: the arguments must be a JSON object, got {_shown(arguments)}. {_takes(self.names)}"
            )
        try:
            made = vars(self._check(arguments if type(arguments) is dict else dict(arguments)))
        except ValidationError as error:
            raise ToldError(_explain(tool, self.names, error)) from None
        return {name: made[field] for name, field in self._pairs}

    @cached_property
    def _check(self) -> Callable[[Any], BaseModel]:
        """What `model_validate` calls, which takes half its time."""
        return self.model.__pydantic_validator__.validate_python

    @cached_property
    def _pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.names, self.fields, strict=True))


def read_signature(tool: str, function: Callable[..., Any], context: type) -> Signature:
    """Read the parameters of `function`; a first one annotated with the `context` type is left out.

    Raises:
        ToolDeclarationError: a parameter has no annotation, is variable, or has a type without JSON form.
    """
    parameters = list(inspect.signature(function).parameters.values())
    hints = _hints(tool, function)
    takes_context = bool(parameters) and hints.get(parameters[0].name) is context
    own = parameters[1:] if takes_context else parameters
    fields = {f"f{i}": _field(tool, parameter, hints, context) for i, parameter in enumerate(own)}
    model = _model(tool, fields)
    return Signature(tuple(p.name for p in own), model, _json_schema(tool, model), takes_context, tuple(fields))


def _hints(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ToolDeclarationError(
            f"Tool '{tool}': an annotation cannot be read ({error}). Use types that its module can name.",
            field="function",
        ) from error


def _field(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], context: type) -> Any:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ToolDeclarationError(
            f"Tool '{tool}': parameter {str(parameter)!r} has no name for a model to use. Use plain named parameters.",
            field=name,
        )
    if name not in hints:
        raise ToolDeclarationError(f"Tool '{tool}': parameter '{name}' has no annotation. Give it a type.", field=name)
    if hints[name] is context:
        raise ToolDeclarationError(f"Tool '{tool}': parameter '{name}' must come first, it is the context.", field=name)
    default = ... if parameter.default is parameter.empty else parameter.default
    return (hints[name], Field(default, alias=name))


def _model(tool: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, allow_inf_nan=False)
    try:
        made: type[BaseModel] = create_model(tool, __config__=config, **fields)
    except (PydanticUserError, TypeError) as error:
        raise _no_json_form(tool, error) from error
    return made


def _json_schema(tool: str, model: type[BaseModel]) -> Plain:
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=_NumbersAreNumbers)
    except PydanticUserError as error:
        raise _no_json_form(tool, error) from error
    schema.pop("title", None)
    for described in schema.get("properties", {}).values():
        described.pop("title", None)
    return schema


def _no_json_form(tool: str, error: Exception) -> ToolDeclarationError:
    first = str(error).splitlines()[0]
    return ToolDeclarationError(
        f"Tool '{tool}': a parameter has a type without JSON form ({first}). Use numbers, text, Decimal, dates, enums, "
        "lists, dicts, dataclasses or pydantic models.",
        field="function",
    )


def _explain(tool: str, names: tuple[str, ...], error: ValidationError) -> str:
    faults = "; ".join(_fault(detail, names) for detail in error.errors(include_url=False)[:5])
    return f"{tool}: {faults}. {_takes(names)}"


def _fault(detail: ErrorDetails, names: tuple[str, ...]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "missing":
        return f"argument '{where}' is missing"
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where, names, n=1)
        return f"there is no argument '{where[:_SHOWN]}'" + (f", did you mean '{near[0]}'?" if near else "")
    return f"argument '{where}' = {_shown(detail['input'])}: {detail['msg']}"


def _takes(names: tuple[str, ...]) -> str:
    return f"It takes: {', '.join(names)}." if names else "It takes no arguments: pass {}."


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
