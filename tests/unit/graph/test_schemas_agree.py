"""The schemas that editors read and the loader say the same of how a manifest is written.

What only the whole of an application can say is left aside: whether a name is known, an expression parses, a graph is
connected, a JSON Schema holds, and sums such as a wait of more than ten years.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casework.cli.resources_check import check
from casework.errors import ManifestError
from casework.graph import schemas
from casework.graph.json_schemas import validator_class
from casework.graph.loading import load_resources
from casework.values import dumps

HEAD = {"apiVersion": "casework.dev/v1alpha1", "metadata": {"name": "x"}}
DECISIONS = [{"name": "yes", "outcome": "approved", "schema": {"type": "object"}}, {"name": "no"}]
NODES: list[dict[str, Any]] = [
    {"id": "a", "type": "agent", "agentRef": "writer", "inputTemplate": "hello", "outputKey": "said"},
    {"id": "t", "type": "TOOL", "tool": "look", "arguments": {"x": 1}, "outputKey": "found"},
    {"id": "c", "type": "CONDITION", "expression": "1 < 2"},
    {"id": "h", "type": "HUMAN_APPROVAL", "decisions": DECISIONS},
    {"id": "p", "type": "PARALLEL", "branches": [
        {"id": "one", "type": "TOOL", "tool": "look"},
        {"id": "two", "type": "WAIT", "signal": "go"},
        {"id": "three", "type": "HUMAN_APPROVAL", "decisions": [{"name": "yes"}]},
    ], "outputKey": "many", "maxParallel": 2},
    {"id": "m", "type": "MAP", "items": "[1]", "branches": [{"id": "one", "type": "AGENT", "agentRef": "writer"}],
     "outputKey": "all"},
    {"id": "s", "type": "SUBWORKFLOW", "workflowRef": "other", "arguments": {}, "outputKey": "sub"},
    {"id": "w", "type": "WAIT", "duration": "PT15M", "signal": "go", "outputKey": "woken"},
]  # fmt: skip
EDGES: list[dict[str, Any]] = [
    {"from": "a", "to": "t"},
    {"from": "t", "to": "c", "condition": "true"},
    {"from": "t", "to": "end", "onError": True},
    {"from": "c", "to": "h", "condition": True},
    {"from": "c", "to": "end", "condition": "false"},
    {"from": "h", "to": "p", "condition": "yes"},
    {"from": "h", "to": "end", "condition": "no"},
    {"from": "p", "to": "m"},
    {"from": "m", "to": "s"},
    {"from": "s", "to": "w"},
    {"from": "w", "to": "end", "outcome": "approved"},
]
SPECS: list[tuple[str, dict[str, Any]]] = [
    ("AiWorkflow", {"initialNode": "a", "nodes": NODES, "edges": EDGES, "maxLoops": 7, "policyAdoption": "pinned",
                    "input": {"type": "object", "properties": {"x": {"type": "integer"}}}}),
    ("AiAgent", {"provider": "main", "model": "small", "systemPrompt": "Write.", "tools": ["look", "find"],
                 "outputSchema": {"type": "object"}, "maxExchanges": 3}),
    ("LlmProvider", {"type": "openai", "baseUrl": "https://host:8000/v1", "keyRef": {"env": "KEY"}, "maxTokens": 9,
                     "defaultModel": "small", "temperature": "0.10", "prices": {"inputPerMillion": 2.5}}),
    ("LlmProvider", {"type": "scripted", "script": "lines"}),
    ("McpServer", {"type": "stdio", "command": "serve", "args": ["-v"], "env": {"A": {"file": "/run/key"}}}),
    ("McpServer", {"type": "http", "url": "http://localhost", "keyRef": {"env": "KEY"}, "tools": ["look"]}),
    ("WorkflowSession", {"workflowRef": "loan", "input": {"deep": [1, None]}, "maxLoops": 3}),
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 5, 5.0, 5.5, 2.5, 10**9, "", " ", "5", "-1", "0.5", "2.0", "3", "1e1", " 1", "+1", "NaN",
    "true", [], {}, ["look", "look"], [None], {"a": 1}, {"env": "KEY"}, {"file": ""}, {"env": "A", "file": "B"},
    {"env": None}, "end", "P", "PT", "P1DT", "PT15M", " P1W ", "P1DT1H1M1.5S", "P1Y", "PT1.5M", "P1M", "15 minutes",
    "http://", "https://a/b@c", "http://u:p@h", "ftp://h", "HTTP://h", "http://h?a@b", "scripted", " scripted ",
    "stdio", "http", "tool", " Map ", "wa\u0131t", "Wait", "CONDITION", "input", "size", "a-b", "Not A Name",
    "x" * 63, "x" * 64, "x" * 101, "yes", [{"name": "yes"}], [{"id": "one", "type": "WAIT", "signal": "go"}],
]  # fmt: skip
FIELDS = [
    "agentRef", "inputTemplate", "outputSchema", "tool", "arguments", "workflowRef", "duration", "signal", "decisions",
    "outputKey", "expression", "items", "branches", "maxParallel", "onError", "condition", "outcome", "script",
    "baseUrl", "keyRef", "command", "url", "args", "env", "file", "initial_node", "source", "json_schema",
]  # fmt: skip
MEANING = re.compile(
    r"there is no (node|AiAgent|registered tool|workflow|LlmProvider)|no way leads|decision '.*' has no edge|"
    r"needs an edge|have this id|branches have the id|several (edges|decisions|onError)|which is no decision|"
    r"no decision has|Expression |Template |JSON Schema that can be used|has condition true or false|"
    r"'[^']*' is no wait from|call theirs|leads back|a decision has its own|names no model"
)
VALIDATOR = validator_class()(schemas.any_kind())


def refusals(document: dict[str, Any]) -> list[str]:
    """What `validate` says, without what is a matter of meaning."""
    try:
        check(load_resources(dumps(document)), None)
    except ManifestError as error:
        lines = [line for line in str(error).splitlines() if not re.fullmatch(r"\d+ problems:", line)]
        return [line for line in lines if not MEANING.search(line)]
    return []


def complaints(document: dict[str, Any]) -> list[str]:
    """What an editor says."""
    return [error.message for error in VALIDATOR.iter_errors(document)]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, item in inner for each in paths(item, (*path, key)))]


def changed(document: dict[str, Any], path: tuple[Any, ...], key: Any, value: Any) -> dict[str, Any]:
    """A copy with one place set, or dropped where the value is `...`."""
    made = deepcopy(document)
    place: Any = made
    for step in path:
        place = place[step]
    if value is not ...:
        place[key] = deepcopy(value)
    elif isinstance(place, list) or key in place:
        del place[key]
    return made


@st.composite
def near_misses(draw: st.DrawFn) -> dict[str, Any]:
    kind, spec = draw(st.sampled_from(SPECS))
    document: dict[str, Any] = {**HEAD, "kind": kind, "spec": spec}
    for _ in range(draw(st.integers(1, 2))):
        *path, key = draw(st.sampled_from([each for each in paths(document) if each]))
        place: Any = document
        for step in path:
            place = place[step]
        if isinstance(place, dict) and draw(st.booleans()):
            key = draw(st.sampled_from([*place, *FIELDS]))
        document = changed(document, tuple(path), key, draw(st.sampled_from([..., *ODD])))
    return document


@pytest.mark.parametrize(("kind", "spec"), SPECS)
def test_what_is_right_is_right_to_both(kind: str, spec: dict[str, Any]) -> None:
    document = {**HEAD, "kind": kind, "spec": spec}
    assert refusals(document) == []
    assert complaints(document) == []


@settings(max_examples=400, deadline=None)
@given(document=near_misses())
def test_editors_and_the_loader_agree(document: dict[str, Any]) -> None:
    """AW-1. The schemas are made from the models and their rules, so an editor's word is the loader's."""
    refused, complained = refusals(document), complaints(document)
    assert bool(refused) == bool(complained), (refused, complained)
