"""A run's input against its workflow's schema."""

from decimal import Decimal
from typing import Any

import pytest

from casework.api.inputs import check_input
from casework.errors import FieldsError
from casework.values import loads

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["applicant_id", "amount", "purpose"],
    "additionalProperties": False,
    "properties": {
        "applicant_id": {"type": "string", "minLength": 1, "maxLength": 64},
        "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "multipleOf": 0.01},
        "purpose": {"type": "string", "enum": ["moving", "other"]},
        "term_months": {"type": "integer"},
        "parts": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    },
}


def errors_of(value: Any, schema: dict[str, Any] = SCHEMA) -> dict[str, str]:
    with pytest.raises(FieldsError) as caught:
        check_input("loan", schema, value)
    return {line["field"]: line["message"] for line in caught.value.errors}


def good(**more: Any) -> dict[str, Any]:
    return {"applicant_id": "A", "amount": Decimal("1000.10"), "purpose": "moving", **more}


@pytest.mark.parametrize("text", ["1000.10", "1000", "0.01", "999999.99", "1e3"])
def test_money_is_checked_to_the_cent(text: str) -> None:
    check_input("loan", SCHEMA, good(amount=loads(text)))


def test_every_field_at_fault_is_named() -> None:
    """DA-7. Missing or invalid: the field."""
    assert errors_of({"amount": Decimal("-1.005"), "purpose": "moon", "extra": 1}) == {
        "input.applicant_id": "is required",
        "input.amount": "-1.005 is not a multiple of 0.01",
        "input.purpose": "'moon' is none of moving, other",
        "input.extra": "is not known; known are applicant_id, amount, purpose, term_months, parts",
    }


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("amount", "5", "'5' is not of type number"),
        ("amount", True, "True is not of type number"),
        ("amount", None, "None is not of type number"),
        ("amount", Decimal("0.001"), "0.001 is not a multiple of 0.01"),
        ("amount", 0, "0 is not more than 0"),
        ("term_months", Decimal("36.5"), "36.5 is not of type integer"),
        ("applicant_id", "", "'' is shorter than 1 characters"),
        ("applicant_id", "x" * 200, "'" + "x" * 79 + "... is longer than 64 characters"),
    ],
)
def test_a_message_says_what_and_which_value(field: str, value: Any, message: str) -> None:
    assert errors_of(good(**{field: value})) == {f"input.{field}": message}


def test_a_whole_decimal_is_an_integer() -> None:
    check_input("loan", SCHEMA, good(term_months=Decimal("36.0")))
    check_input("loan", SCHEMA, good(term_months=Decimal("1e30")))


def test_a_field_deep_inside_is_named_by_its_place() -> None:
    assert errors_of(good(parts=[{"name": 1}, {}])) == {"input.parts.1.name": "is required"}


def test_a_number_beyond_all_measure_is_an_error_not_a_crash() -> None:
    assert "input" in "".join(errors_of(good(amount=Decimal("1e900"))))


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_an_input_that_is_no_object_is_refused(value: Any) -> None:
    assert errors_of(value) == {"input": "is not a JSON object"}


def test_without_a_schema_any_object_goes() -> None:
    check_input("loan", None, {"anything": [1, {"x": None}]})
