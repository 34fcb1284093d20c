"""Custom resource definitions for Kubernetes (apiextensions v1), with structural schemas.

A structural schema has no references and a type at every level. What JSON Schema says and it cannot is left out: a
choice of types becomes a field whose content is kept as it is, and a refusal of unknown fields is the server's own
(it prunes them). Casework's own checks stay the measure: these schemas take all that is right, and some that is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from casework.graph.manifests import API_VERSION
from casework.graph.schemas.editors import json_schema
from casework.graph.schemas.rules import Schema

_GROUP, _VERSION = API_VERSION.split("/")
_KEPT = (
    "type", "description", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
    "required", "default", "format",
)  # fmt: skip
_FREE = {"x-kubernetes-preserve-unknown-fields": True}
_READY = ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')
_AGE = ("Age", "date", ".metadata.creationTimestamp")
_COLUMNS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "AiWorkflow": (
        ("Start", "string", ".spec.initialNode"),
        ("Version", "integer", ".status.publishedVersion"),
        _READY,
    ),
    "AiAgent": (("Provider", "string", ".spec.provider"), ("Model", "string", ".status.effectiveModel"), _READY),
    "LlmProvider": (("Type", "string", ".spec.type"), ("Model", "string", ".spec.defaultModel"), _READY),
    "McpServer": (("Type", "string", ".spec.type"), ("URL", "string", ".spec.url"), _READY),
    "WorkflowSession": (
        ("Workflow", "string", ".spec.workflowRef"),
        ("Phase", "string", ".status.phase"),
        ("Node", "string", ".status.currentNode"),
        ("Loops", "integer", ".status.loopCount"),
    ),
}
_SHORT = {"AiWorkflow": "aiwf", "AiAgent": "aiag", "LlmProvider": "llmp", "McpServer": "mcps", "WorkflowSession": "wfs"}


def definition(kind: str) -> Schema:
    """The CustomResourceDefinition of a kind, with printer columns and the status subresource.

    Raises:
        KeyError: there is no such kind.
    """
    plural = f"{kind.lower()}s"
    columns = [{"name": name, "type": type_, "jsonPath": path} for name, type_, path in (*_COLUMNS[kind], _AGE)]
    version = {
        "name": _VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural(json_schema(kind))},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {**names, "shortNames": [_SHORT[kind]], "categories": ["casework"]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def structural(schema: Schema) -> Schema:
    """The structural form of a kind's JSON Schema. What stands in every object is the server's: it is only named."""
    made = _level(schema, schema.get("$defs", {}))
    made["properties"].update(apiVersion={"type": "string"}, kind={"type": "string"}, metadata={"type": "object"})
    return {**made, "required": ["spec"]}


def _level(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        found = definitions[schema["$ref"].rsplit("/", 1)[1]]
        return _level({**found, **{key: item for key, item in schema.items() if key != "$ref"}}, definitions)
    if "anyOf" in schema:
        return _choice(schema, definitions)
    if "type" not in schema and "const" not in schema and "enum" not in schema:
        return {**_described(schema), **_FREE}
    made = {key: schema[key] for key in _KEPT if schema.get(key) is not None}
    if "const" in schema:
        made |= {"type": "string", "enum": [schema["const"]]}
    for bound, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if bound in schema:
            made |= {plain: schema[bound], bound: True}
    if schema.get("type") == "array":
        made["items"] = _level(schema["items"], definitions)
    if schema.get("type") == "object":
        made |= _members(schema, definitions)
    return made


def _members(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Named members, or members of one form, never both; else whatever is there is kept."""
    if schema.get("properties"):
        return {"properties": {name: _level(part, definitions) for name, part in schema["properties"].items()}}
    extra = schema.get("additionalProperties")
    return {"additionalProperties": _level(extra, definitions)} if isinstance(extra, dict) else dict(_FREE)


def _choice(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """One form that may be null, or several forms: those of one type lose what they differ in."""
    rest = {key: item for key, item in schema.items() if key != "anyOf"}
    forms = [form for form in schema["anyOf"] if form.get("type") != "null"]
    nullable = {"nullable": True} if len(forms) < len(schema["anyOf"]) else {}
    if len(forms) == 1:
        return {**_level({**forms[0], **rest}, definitions), **nullable}
    if all(form.get("type") == "string" for form in forms):
        pattern = next((form["pattern"] for form in forms if "pattern" in form), None)
        return {"type": "string", **({"pattern": pattern} if pattern else {}), **_described(schema), **nullable}
    return {**_described(schema), **nullable, **_FREE}


def _described(schema: Schema) -> Schema:
    return {"description": schema["description"]} if "description" in schema else {}
