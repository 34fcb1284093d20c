"""What a graph says of its input, held against the input schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from casework.errors import ManifestError
from casework.graph import templates
from casework.graph.admission import admit
from casework.graph.input_paths import expression_problems, template_problems
from casework.graph.manifests import Manifest

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "amount": {"type": "number"},
        "terms": {"type": "integer"},
        "any": {"type": ["number", "null"]},
        "name": {"type": "string"},
        "items": {"type": "array"},
        "open": {"type": "object", "properties": {"x": {}}},
        "home": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"street": {"type": "string"}, "rent": {"type": "number"}},
        },
    },
}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "input.nmae == 'x'",
            "input has no 'nmae'; it has amount, terms, any, name, items, open, home. Did you mean 'name'",
        ),
        ("has(input.nmae)", "input has no 'nmae'"),
        ("context.input.nmae == 'x'", "input has no 'nmae'"),
        ("input['nmae'] == 'x'", "input has no 'nmae'"),
        ("true && input . nmae.startsWith('x')", "input has no 'nmae'"),
        ("input.home.stret == ''", "input.home has no 'stret'; it has street, rent. Did you mean 'street'"),
        ("input.amount > 1000", "'>' on input.amount, which is of type number"),
        ("1000 <= input.amount", "'<=' on input.amount"),
        ("input.home.rent * 12 > 5", "'*' on input.home.rent"),
        ("input.amount == 1000", 'Write compare(input.amount, "1000.00") > 0'),
        ("1000 != input.any", "'!=' on input.any"),
    ],
)
def test_an_expression_that_can_never_hold_is_refused(source: str, says: str) -> None:
    """AW-5. A name that the schema rules out, or a number that arrives as text."""
    assert any(says in problem for problem in expression_problems(source, SCHEMA)), source


@pytest.mark.parametrize(
    "source",
    [
        "input.terms > 5",
        "input.name == 'input.nmae'",
        'input.name == "a \\" input.nmae"',
        "input.open.whatever == 1",
        "input.items.size() > 2",
        "input.items[0].x == 1",
        "input.size() == 2",
        "'amount' in input",
        "input.any == null",
        "input.amount == '1000.00'",
        "compare(input.amount, '1000.00') > 0",
        "double(input.amount) > 5.0",
        "output.input.nmae == 1",
        "input.name == 'x' // input.nmae",
        "input.items.exists(input, input.nmae == 1)",
        "input['na\\u006de'] == 'x'",
        "input.name.startsWith('x') && input.terms + 1 > 2",
        "input[",
        "input.",
        "",
    ],
)
def test_what_may_hold_is_left_alone(source: str) -> None:
    """AW-5. No expression that could hold is refused."""
    assert list(expression_problems(source, SCHEMA)) == []


def test_without_a_closed_schema_nothing_is_known() -> None:
    """AW-5. Names are free where the schema leaves them open; a declared number stays one."""
    assert list(expression_problems("input.nmae == 1", None)) == []
    assert list(expression_problems("input.nmae == 1", {"properties": {"name": {}}})) == []
    assert list(expression_problems("input.a > 1", {"properties": {"a": {"type": "number"}}}))


@pytest.mark.parametrize(
    ("template", "refused"),
    [
        ("{{ input.nmae }}", True),
        ('{{ input.nmae | default: "none" }}', True),
        ("{% if context.input.nmae %}x{% endif %}", True),
        ("{{ input.home.stret }}", True),
        (
            "{{ input.name }} {{ input.items.size }} {{ input.size }} {{ input.items[0].x }} {{ input.home.street }}",
            False,
        ),
        ("{% for item in input.items %}{{ item.nmae }}{% endfor %}", False),
        ("{% assign input = 3 %}{{ input.nmae }}", False),
        ("{{ input[input.name] }}", False),
    ],
)
def test_a_template_names_what_there_may_be(template: str, refused: bool) -> None:
    """AW-5. A misspelt name is refused before a run meets it."""
    assert bool(list(template_problems(templates.paths(template), SCHEMA))) is refused


def test_admission_names_node_and_field(loan: dict[str, Any], loan_manifests: Callable[..., list[Manifest]]) -> None:
    """AW-5. Each at its place."""
    loan["input"] = SCHEMA
    loan["nodes"][0]["inputTemplate"] = "{{ input.amuont }}"
    loan["nodes"].append({"id": "rich", "type": "CONDITION", "expression": "input.amount > 5"})
    loan["nodes"].append(
        {"id": "f", "type": "TOOL", "tool": "t", "outputKey": "c", "arguments": {"a": ["{{ input.b }}"]}}
    )
    loan["edges"][0] = {"from": "underwrite", "to": "f", "condition": "input.nmae == '1'"}
    with pytest.raises(ManifestError) as caught:
        admit(loan_manifests(loan), ["credit_check", "t"])
    said = str(caught.value)
    assert "node 'underwrite': inputTemplate: input has no 'amuont'" in said
    assert "node 'rich': expression: '>' on input.amount" in said
    assert "node 'f': arguments: input has no 'b'" in said
    assert "edge from 'underwrite' to 'f': condition: input has no 'nmae'" in said
