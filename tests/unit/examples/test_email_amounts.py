"""Which amounts of an application are mended, and which are left to a person."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.examples.email_intake.applications import DOLLARS_PER_EURO, normalised, repaired, validated


@pytest.mark.parametrize(
    ("written", "dollars"),
    [
        ("25.000,00 EUR", "27500.00"),
        ("EUR 25.000,00", "27500.00"),
        ("25.000 €", "27500.00"),
        ("1000,50 EUR", "1100.55"),
        ("25,000.00 USD", "25000.00"),
        ("$ 8,000", "8000.00"),
    ],
)
def test_one_clear_reading_is_taken(written: str, dollars: str) -> None:
    """BP-25. And what was done is told."""
    found = repaired({"applicant_id": "A", "amount": written, "purpose": "p"})
    assert found is not None
    fields, note = found
    assert fields == {"applicant_id": "A", "amount": dollars, "purpose": "p"}
    assert written in note
    validated(fields)


@pytest.mark.parametrize(
    "written", ["25.000", "25.00.00 EUR", "2.50,00 EUR", "25,000.00 EUR", "-5 EUR", "EUR", "", "many"]
)
def test_anything_else_is_left_to_a_person(written: str) -> None:
    """BP-25. `25.000` may be twenty-five as well."""
    assert repaired({"amount": written}) is None


@given(st.integers(min_value=1, max_value=90_000_000))
def test_every_amount_in_euros_keeps_its_cents(cents: int) -> None:
    """What is written with points and a comma is read as that many cents."""
    euros = Decimal(cents) / 100
    written = f"{euros:,.2f}".translate(str.maketrans(",.", ".,")) + " EUR"
    found = repaired({"amount": written})
    assert found is not None
    assert abs(Decimal(found[0]["amount"]) - euros * DOLLARS_PER_EURO) <= Decimal("0.005")


def test_the_purpose_is_written_as_policy_has_it() -> None:
    """Words become one name; the amount is a number."""
    assert normalised({"applicant_id": "A", "amount": "8000.00", "purpose": "Home  Improvement"}) == {
        "applicant_id": "A",
        "amount": Decimal("8000.00"),
        "purpose": "home_improvement",
    }
