"""The schemas of manifests: JSON Schema for editors, structural schemas for Kubernetes, both from the models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

import casework
from casework.cli.root import code_of_run
from casework.graph import schemas
from casework.graph.kinds import ALL_KINDS
from casework.graph.schemas.writing import yaml_text

EXAMPLES = sorted((Path(casework.__file__).parent / "examples").rglob("manifests/*.yaml"))
HEAD = {"apiVersion": "casework.dev/v1alpha1", "metadata": {"name": "x"}}
ALLOWED = {
    "type", "description", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems", "required", "default", "format", "nullable", "properties",
    "additionalProperties", "items", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def levels(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema and all schemas in it, each with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from levels(part, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from levels(schema[name], f"{path}[{name}]")


def problems(schema: dict[str, Any]) -> list[str]:
    """What breaks the rules of structural schemas."""
    return [f"{path}: {what}" for path, level in levels(schema) for what, wrong in _rules(path, level) if wrong]


def _rules(path: str, level: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Each rule, and whether the level breaks it."""
    free, kind = level.get("x-kubernetes-preserve-unknown-fields"), level.get("type")
    members = level.keys() & {"properties", "additionalProperties"}
    yield "words that are not allowed", level.keys() - ALLOWED
    yield "no type", kind is None and not free
    yield "no such type", kind is not None and kind not in TYPES
    yield "preserve-unknown-fields is true or absent", free not in (None, True)
    yield "properties beside additionalProperties", len(members) == 2
    yield "additionalProperties false", level.get("additionalProperties") is False
    yield "an array without items", kind == "array" and not isinstance(level.get("items"), dict)
    yield "its members would be pruned", kind == "object" and not members and not free and path != ".metadata"
    yield (
        "a default of another type",
        "default" in level and not isinstance(level["default"], TYPES.get(kind or "", ())),
    )
    yield "required and not there", set(level.get("required", ())) - set(level.get("properties", {}))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_definitions_are_structural(kind: str) -> None:
    """AW-1. No $ref, no anyOf, a type at every level, no additionalProperties beside properties; a status subresource,
    printer columns that lead to fields there are."""
    made = schemas.definition(kind)
    (version,) = made["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert problems(root) == []
    assert root["properties"]["metadata"] == {"type": "object"}
    assert version["subresources"] == {"status": {}}
    assert made["metadata"]["name"] == f"{made['spec']['names']['plural']}.{made['spec']['group']}"
    known = {path for path, _ in levels(root)}
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"].partition("[?")[0]
        assert path in known or path == ".metadata.creationTimestamp", path


def test_the_check_of_structure_sees_what_is_wrong() -> None:
    """The check above is worth something: it refuses what a server of Kubernetes refuses."""
    bad = {"type": "object", "properties": {"a": {"$ref": "#/x"}, "b": {"type": "array"}}, "additionalProperties": {}}
    assert len(problems(bad)) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_hold_to_the_schemas_and_name_them(path: Path) -> None:
    """AW-1. An editor finds no fault in what the loader takes, and finds the schema by the line in the file."""
    text = path.read_text(encoding="utf-8")
    documents = list(YAML(typ="safe").load_all(text))
    for document in documents:
        Draft202012Validator(schemas.json_schema(document["kind"])).validate(document)
        Draft202012Validator(schemas.any_kind()).validate(document)
    lines = [line for line in text.splitlines() if line.startswith("# yaml-language-server: $schema=")]
    assert len(lines) == len(documents), "editors read the line of each document"
    for line in lines:
        assert (path.parent / line.partition("=")[2]).resolve().name == "casework.schema.json"
        assert (path.parent / line.partition("=")[2]).is_file()


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("AiWorkflow", {"initialNode": "a", "nodes": [
            {"id": "a", "type": "aGent", "agentRef": "x", "outputKey": "y"}],
            "edges": [{"from": "a", "to": "end", "condition": True}]}),
        ("LlmProvider", {"type": "openai", "temperature": "0.10"}),
        ("WorkflowSession", {"workflowRef": "loan", "input": {"deep": [1, None]}}),
        ("McpServer", {"type": "http", "url": "http://localhost"}),
    ],
)  # fmt: skip
def test_editors_take_what_the_loader_takes(kind: str, spec: dict[str, Any]) -> None:
    """AW-1. Types in any case, `condition: true`, numbers as texts; a status with them."""
    written = {**HEAD, "kind": kind, "spec": spec}
    ALL_KINDS[kind].model_validate(written)
    Draft202012Validator(schemas.any_kind()).validate({**written, "status": {"observedGeneration": 1}})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "AiWorkflo"}, "AiWorkflo"),
        ({"spec": {"provider": "p", "tool": []}}, "tool"),
        ({"metadata": {"name": "Not A Name"}}, "Not A Name"),
    ],
)
def test_editors_see_faults(change: dict[str, Any], told: str) -> None:
    """AW-1."""
    written = {**HEAD, "kind": "AiAgent", "spec": {"provider": "p"}, **change}
    found = list(Draft202012Validator(schemas.any_kind()).iter_errors(written))
    assert any(told in error.message for error in found)


def test_every_schema_is_one() -> None:
    """AW-1."""
    for kind in ALL_KINDS:
        Draft202012Validator.check_schema(schemas.json_schema(kind))
        assert "initial_node" not in str(schemas.json_schema(kind))


def test_definitions_can_be_read_again() -> None:
    """AW-1. The YAML says what was meant."""
    made = [schemas.definition(kind) for kind in ALL_KINDS]
    assert list(YAML(typ="safe").load_all(yaml_text(made))) == made


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-1. `casework schema agent`, `casework schema --crd`."""
    assert code_of_run(["schema", "agents"]) == 0
    assert '"systemPrompt"' in capsys.readouterr().out
    assert code_of_run(["schema", "--crd"]) == 0
    assert capsys.readouterr().out.count("kind: CustomResourceDefinition") == 5
    assert code_of_run(["schema", "AiAgnt"]) == 2
    assert "Did you mean 'AiAgent'?" in capsys.readouterr().err
