"""Hints: what a workflow asks of its input that the schema leaves open and does not name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from casework.graph.input_uses import hints
from casework.graph.loading import load
from casework.graph.manifests import AiWorkflow
from casework.graph.schema_words import WORDS, misspelt
from casework.values import dumps

OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "who": {"type": "object", "properties": {"name": {}}}},
}


def told(schema: dict[str, Any] | None, **node: Any) -> list[str]:
    head = {"apiVersion": "casework.dev/v1alpha1", "kind": "AiWorkflow", "metadata": {"name": "loan"}}
    made = {"id": "a", "type": "TOOL", "tool": "t", "outputKey": "k", **node}
    edges = [{"from": "a", "to": "end", "condition": node.pop("condition", "")}]
    made.pop("condition", None)
    spec = {"initialNode": "a", "nodes": [made], "edges": edges, **({"input": schema} if schema else {})}
    (workflow,) = load(dumps({**head, "spec": spec}), "w.yaml")
    assert isinstance(workflow, AiWorkflow)
    return list(hints(workflow))


def test_a_name_that_the_schema_does_not_have_is_told_with_the_near_one() -> None:
    """AW-2. An open schema refuses nothing, and a typo is told all the same."""
    (hint,) = told(OPEN, arguments={"x": "{{ input.amonut }}"})
    assert hint.startswith("w.yaml:1: spec.nodes[0].arguments: AiWorkflow 'loan': node 'a': arguments: ")
    assert "input has no 'amonut'; it has amount, who. Did you mean 'amount'?" in hint
    assert "Did you mean 'name'?" in told(OPEN, condition="input.who.nmae == 'x'")[0]
    assert told(OPEN, type="MAP", items="input.amounts", branches=[])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "object"},
        {"properties": {}},
        {**OPEN, "additionalProperties": {"type": "string"}},
        {**OPEN, "patternProperties": {"^a": {}}},
        {**OPEN, "allOf": [{"properties": {"amonut": {}}}]},
        {"$ref": "#/$defs/x", "properties": {"amount": {}}},
    ],
)
def test_a_schema_that_says_what_else_there_may_be_is_taken_at_its_word(schema: dict[str, Any] | None) -> None:
    assert told(schema, arguments={"x": "{{ input.amonut }}"}) == []


def test_what_is_refused_is_no_hint_and_what_is_declared_neither() -> None:
    """A closed schema makes it a problem; a declared name is right."""
    assert told({**OPEN, "additionalProperties": False}, arguments={"x": "{{ input.amonut }}"}) == []
    assert told(OPEN, arguments={"x": "{{ input.amount }} {{ input.who.name }}"}) == []


def test_a_misspelt_word_of_the_schema_is_told() -> None:
    """AW-2. A validator passes over words that it does not know, so a typo would check nothing."""
    schema = {"type": "object", "requird": ["a"], "properties": {"requird": {"type": "string", "maxLenght": 3}}}
    inner, outer = told(schema)
    assert "spec.input.properties.requird.maxLenght: AiWorkflow 'loan': input: 'maxLenght' is no word of" in inner
    assert outer.endswith("'requird' is no word of JSON Schema and has no effect. Did you mean 'required'?")
    assert told({"x-order": 1, "enum": [{"requird": 1}], "default": {"requird": 1}}) == []


@given(st.text(), st.sampled_from(sorted(WORDS)))
def test_words_of_the_draft_are_no_typos(text: str, word: str) -> None:
    assert list(misspelt({word: text})) == []
    assert set(Draft202012Validator.VALIDATORS) - {"$dynamicRef"} <= WORDS
