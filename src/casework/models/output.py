"""Structured answers: the tool that carries them, and whether they hold to the schema.

A provider is offered one more tool, `final_answer`, whose parameters are the output schema. Tools must take objects,
so a schema of another type travels inside one, under `answer`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from casework.agents.model import ToolSchema
from casework.errors import FatalError
from casework.graph.json_schemas import schema_problem, validator_class
from casework.values import Plain, loads

FINAL_ANSWER = "final_answer"
_INNER = "answer"
_FENCED = re.compile(r"^```(?:json)?\s*\n(.*)\n\s*```$", re.DOTALL)


def output_tool(schema: Mapping[str, Any]) -> ToolSchema:
    """The tool that a model calls to give its final answer."""
    description = "Give the final answer. Call this once, when no other tool is needed any more."
    if _is_object(schema):
        return ToolSchema(FINAL_ANSWER, description, dict(schema))
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    wrapped = {"type": "object", "properties": {_INNER: inner}, "required": [_INNER], **shared}
    return ToolSchema(FINAL_ANSWER, description, wrapped)


def unwrapped(arguments: Plain, schema: Mapping[str, Any]) -> Plain:
    """The answer itself, from the arguments of `final_answer`."""
    if not _is_object(schema) and isinstance(arguments, Mapping) and set(arguments) == {_INNER}:
        return arguments[_INNER]
    return arguments


def output_in(text: str) -> Plain:
    """The JSON value that a text is, with or without a code fence around it; None where it is none."""
    stripped = text.strip()
    fenced = _FENCED.match(stripped)
    try:
        return loads(fenced[1] if fenced else stripped)
    except (ValueError, RecursionError):
        return None


def fault_of(value: Plain, schema: Mapping[str, Any]) -> str | None:
    """Why `value` does not hold to the JSON Schema, in one line; None where it does.

    Raises:
        FatalError: the schema itself is not valid, or refers to something outside itself.
    """
    from referencing import Registry  # noqa: PLC0415 - not needed by scripts without a schema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    problem = schema_problem(schema)
    try:
        # An empty registry: a schema never makes this process fetch something.
        checker = validator_class()(dict(schema), registry=Registry())
        first = None if problem else next(checker.iter_errors(value), None)
    except Unresolvable as error:
        problem = str(error)
    if problem:
        raise FatalError(f"The output schema is not usable: {problem[:300]}. Mend the agent's outputSchema.")
    if first is None:
        return None
    where = ".".join(str(part) for part in first.absolute_path)
    return f"{where}: {first.message}"[:500] if where else first.message[:500]


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)
