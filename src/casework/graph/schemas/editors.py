"""JSON Schema (2020-12) of each kind, for editors; they read what the loader reads, such as types in lower case.

An editor is told by a line in the file: `# yaml-language-server: $schema=PATH`.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from casework.graph.kinds import ALL_KINDS
from casework.graph.schemas.rules import Schema, any_case, rules
from casework.graph.status import STATUSES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Written(GenerateJsonSchema):
    """The schema of what may be written: what a validator takes before the field's own type is part of it."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        made = super().function_before_schema(schema)
        name = getattr(schema["function"]["function"], "__name__", "")
        if name == "_words":
            return {"anyOf": [made, {"type": "boolean"}]}
        if name == "_any_case" and "enum" in made:
            return {"anyOf": [made, {"type": "string", "pattern": any_case(made["enum"])}]}
        return made

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        beside = rules(schema["cls"].__name__)
        return {**made, "allOf": beside} if beside else made


def json_schema(kind: str) -> Schema:
    """The JSON Schema of a kind, its `status` included.

    Raises:
        KeyError: there is no such kind.
    """
    model, status = ALL_KINDS[kind], STATUSES[kind]
    made = model.model_json_schema(by_alias=True, schema_generator=_Written)
    told = status.model_json_schema(by_alias=True, schema_generator=_Written)
    definitions = {**made.pop("$defs", {}), **told.pop("$defs", {})}
    told["description"] = "Written by the platform; left out when the manifest is applied."
    made["properties"]["status"] = told
    made["properties"]["apiVersion"].pop("default", None)
    made["properties"]["kind"].pop("default", None)
    made["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return {"$schema": DIALECT, **_tidy(made), "$defs": _tidy(definitions)}


def any_kind() -> Schema:
    """One schema for files of any kinds: `kind` says which one holds."""
    definitions: Schema = {}
    choices: list[Schema] = []
    for kind in ALL_KINDS:
        made = json_schema(kind)
        definitions.update(made.pop("$defs"))
        made.pop("$schema")
        definitions[kind] = made
        choices.append(
            {
                "if": {"required": ["kind"], "properties": {"kind": {"const": kind}}},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
        )
    head = {"type": "object", "required": ["apiVersion", "kind", "metadata", "spec"]}
    named = {"kind": {"enum": list(ALL_KINDS), "description": "What the manifest describes."}}
    return {
        "$schema": DIALECT,
        "title": "Casework",
        **head,
        "properties": named,
        "allOf": choices,
        "$defs": definitions,
    }


def _tidy(schema: Any) -> Any:
    """Without the titles that pydantic makes of names, and without defaults that say nothing."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _tidy(item) for key, item in schema.items() if not (key == "title" and isinstance(item, str))}
    if made.get("default", ...) is None:
        del made["default"]
    return made
