"""JSON Schemas in manifests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casework.graph.json_schemas import Misfit, misfits, schema_problem

LOAN = {
    "type": "object",
    "required": ["applicant_id", "amount"],
    "properties": {
        "applicant_id": {"type": "string", "minLength": 1},
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "terms": {"type": "array", "items": {"type": "integer"}},
    },
    "additionalProperties": False,
}


def test_a_value_that_fits() -> None:
    """DA-7. Decimals are numbers, and whole ones integers."""
    assert misfits(LOAN, {"applicant_id": "a", "amount": Decimal("7600.50"), "terms": [1, Decimal("2.0")]}) == []


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"amount": 1}, "applicant_id"),
        ({"applicant_id": "", "amount": 1}, "applicant_id"),
        ({"applicant_id": "a", "amount": 0}, "amount"),
        ({"applicant_id": "a", "amount": True}, "amount"),
        ({"applicant_id": "a", "amount": "1"}, "amount"),
        ({"applicant_id": "a", "amount": 1, "terms": [1, Decimal("1.5")]}, "terms[1]"),
        ({"applicant_id": "a", "amount": 1, "more": 1}, ""),
        ([], ""),
    ],
)
def test_a_misfit_names_the_field(value: Any, field: str) -> None:
    """DA-7. The field at fault is named."""
    assert [misfit.field for misfit in misfits(LOAN, value)] == [field]


def test_every_missing_field_is_named() -> None:
    assert [misfit.field for misfit in misfits(LOAN, {})] == ["amount", "applicant_id"]


def test_an_absurd_number_takes_no_time() -> None:
    assert misfits({"type": "integer"}, Decimal("1e999999")) == []
    assert [m.field for m in misfits({"type": "integer"}, Decimal("NaN"))] == [""]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "txt"},
        {"properties": []},
        {"$ref": "https://example.com/x"},
        {"items": [{"$ref": "file:///etc/passwd"}]},
        {"pattern": "("},
        {"properties": {"a": {"pattern": "["}}},
        {"minimum": "1"},
        {"pattern": "(?=a)"},
        {"pattern": r"(a)\1"},
        {"patternProperties": {"(?<!a)b": {}}},
        {"pattern": "a" * 1001},
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        {"required": ["nmae"], "properties": {"name": {}}, "additionalProperties": False},
        {"properties": {"a": {"required": ["x"], "additionalProperties": False}}},
    ],
)
def test_what_is_no_schema(schema: dict[str, Any]) -> None:
    """AW-5. A schema that does not parse, or leads outside."""
    assert schema_problem(schema)


def test_a_schema_nested_without_end() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"not": schema}
    assert "nested deeper" in str(schema_problem(schema))


def test_properties_may_have_any_name() -> None:
    """A property called pattern or $ref is a property."""
    schema = {"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}}
    assert schema_problem(schema) is None
    assert misfits(schema, {"pattern": 1}) == [Misfit("pattern", "1 is not of type 'string'")]


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^([a-z]+)*$"},
        {"propertyNames": {"pattern": "^([a-z]+)*$"}},
        {"patternProperties": {"^([a-z]+)*$": False}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_no_pattern_backtracks(schema: dict[str, Any]) -> None:
    """DA-7. A short text and a careless pattern hold up nobody."""
    assert schema_problem(schema) is None
    text = "a" * 5_000 + "!"
    assert [m.field for m in misfits(schema, text if "pattern" in schema else {text: "x"})]


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^\u00e9$", "é", True),
        (r"^\\u00e9$", r"\u00e9", True),
        (r"^\p{L}+$", "Ärger", True),
        (r"^\S$", "é", True),
        ("^.$", "\ud800", True),
        ("^.$", "\x00", True),
        ("^a$", "a\n", False),
    ],
)
def test_patterns_as_ecmascript_has_them(pattern: str, text: str, fits: bool) -> None:
    """DA-7. Found anywhere unless anchored."""
    assert schema_problem({"pattern": pattern}) is None
    assert (misfits({"pattern": pattern}, text) == []) is fits


def test_pattern_properties_and_additional_ones() -> None:
    """DA-7. As the standard has them."""
    schema = {"properties": {"a": {}}, "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}
    assert schema_problem({**schema, "required": ["x_1"]}) is None
    assert misfits(schema, {"a": 1, "x_1": 2}) == []
    assert [m.field for m in misfits(schema, {"x_1": "y"})] == ["x_1"]
    assert "'b', 'c' were unexpected" in misfits(schema, {"b": 1, "c": 2})[0].message
