"""What a manifest's parts ask of several fields at once, as JSON Schema: the words of `manifests` and `node_rules`.

pydantic makes the schema of each field; what a validator of a whole model or admission refuses is said here. That both
say the same is tested with manifests that are nearly right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from casework.graph.manifests import END, BranchType, NodeType
from casework.graph.node_rules import OPTIONAL, REQUIRED, RESERVED_KEYS

Schema = dict[str, Any]

_NULL: Schema = {"type": "null"}
_THERE: Mapping[str, Schema] = {
    "expression": {"type": ["string", "boolean"], "pattern": r"\S"},
    "items": {"type": "string", "pattern": r"\S"},
    "decisions": {"type": "array", "minItems": 1},
    "branches": {"type": "array", "minItems": 1},
}
"""What it means that a field is there, where it may be blank or empty too; else it is a text."""
_STDIO, _HTTP = {"const": "stdio"}, {"const": "http"}
_OF_EDGES = (
    {
        "if": {"required": ["onError"], "properties": {"onError": {"const": True}}},
        "then": {"properties": {"condition": {"type": "string", "pattern": r"^\s*$"}}},
    },
    {
        "if": {"required": ["outcome"], "properties": {"outcome": {"type": "string"}}},
        "then": {"properties": {"to": {"const": END}}},
    },
)


def any_case(words: Iterable[str]) -> str:
    """A pattern for one of `words` in any case, with blanks around it, that every dialect of patterns reads alike."""
    return rf"^\s*({'|'.join(''.join(_either(letter) for letter in word) for word in words)})\s*$"


def _either(letter: str) -> str:
    return f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter


def rules(model: str) -> list[Schema]:
    """What holds for the parts of that model beside their fields; empty where nothing does."""
    return _RULES.get(model, [])


def _needs(*names: str, without: Iterable[str] = ()) -> Schema:
    """That the fields are there and the others are not; a null is not there."""
    wanted = {name: _THERE.get(name, {"type": "string"}) for name in names}
    return {"required": list(names), "properties": {**wanted, **dict.fromkeys(without, _NULL)}}


def _when(field: str, words: Schema, then: Schema) -> Schema:
    return {"if": {"required": [field], "properties": {field: words}}, "then": then}


def _vertices(types: Iterable[str], fields: Iterable[str]) -> list[Schema]:
    """One rule for each type of node, or of branch: `fields` are those that there are."""
    return [_when("type", {"type": "string", "pattern": any_case([each])}, _vertex(each, fields)) for each in types]


def _vertex(type_: str, fields: Iterable[str]) -> Schema:
    there = tuple(fields)
    required = [name for name in REQUIRED[type_] if name in there]
    allowed = {*required, *OPTIONAL.get(type_, ())}
    made = _needs(*required, without=[name for name in there if name not in allowed])
    if type_ == "WAIT":
        made["anyOf"] = [{"required": [name], "properties": {name: {"not": _NULL}}} for name in ("duration", "signal")]
    if type_ == "MAP":
        made["properties"]["branches"] = {**_THERE["branches"], "maxItems": 1}
    return made


_OF_BRANCHES = (
    "agentRef", "inputTemplate", "outputSchema", "tool", "arguments", "workflowRef", "duration", "signal", "decisions",
)  # fmt: skip
_OF_NODES = (*_OF_BRANCHES, "outputKey", "expression", "items", "branches", "maxParallel")
_RULES: Mapping[str, list[Schema]] = {
    "Node": [
        *_vertices(get_args(NodeType), _OF_NODES),
        {"properties": {"id": {"not": {"const": END}}, "outputKey": {"not": {"enum": sorted(RESERVED_KEYS)}}}},
    ],
    "BranchSpec": _vertices(get_args(BranchType), _OF_BRANCHES),
    "Edge": [*_OF_EDGES],
    "AiWorkflowSpec": [{"properties": {"input": {"properties": {"type": {"const": "object"}}}}}],
    "AiAgentSpec": [{"properties": {"tools": {"uniqueItems": True}}}],
    "KeyRef": [{"oneOf": [_needs("env"), _needs("file")]}],
    "LlmProviderSpec": [
        {
            **_when("type", {"pattern": r"^\s*scripted\s*$"}, _needs("script")),
            "else": {"properties": {"script": _NULL}},
        }
    ],
    "McpServerSpec": [
        _when("type", _STDIO, _needs("command", without=("url", "keyRef"))),
        _when("type", _HTTP, _needs("url", without=("command",))),
        _when("type", _HTTP, {"properties": {"args": {"maxItems": 0}, "env": {"maxProperties": 0}}}),
    ],
}
