"""An application for a loan: its fields as texts, made a valid input of the workflow, and what can be repaired."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from casework.errors import BusinessError

FIELDS = ("applicant_id", "amount", "purpose")
DOLLARS_PER_EURO = Decimal("1.10")
"""The house rate; amounts in euros are repaired by it, and the letter says so."""
LARGEST = Decimal(1_000_000)
_APPLICANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLAIN = re.compile(r"\d{1,9}(\.\d{1,2})?")
_POINTS = re.compile(r"(\d{1,3}(?:\.\d{3})*|\d{1,9})(?:,(\d{2}))?")
_COMMAS = re.compile(r"(\d{1,3}(?:,\d{3})*|\d{1,9})(?:\.(\d{2}))?")
_EURO = re.compile(r"\s*(?:EUR|€)\s*", re.IGNORECASE)
_DOLLAR = re.compile(r"\s*(?:USD|\$)\s*", re.IGNORECASE)


def validated(fields: Mapping[str, str]) -> None:
    """Refuse what is no application, or one that nobody could decide.

    Raises:
        BusinessError: NO_APPLICATION, MISSING_FIELD, BAD_APPLICANT or BAD_AMOUNT; names field and value.
    """
    if not any(name in fields for name in FIELDS):
        raise BusinessError("the mail has no application in a CSV or PDF attachment", code="NO_APPLICATION")
    lacking = [name for name in FIELDS if name not in fields]
    if lacking:
        raise BusinessError(f"the application lacks {', '.join(lacking)}", code="MISSING_FIELD")
    if not _APPLICANT.fullmatch(fields["applicant_id"]):
        raise BusinessError(f"applicant_id is {fields['applicant_id']!r:.80}, which is none", code="BAD_APPLICANT")
    if not _PLAIN.fullmatch(fields["amount"]) or not 0 < Decimal(fields["amount"]) <= LARGEST:
        raise BusinessError(
            f"amount is {fields['amount']!r:.80}: write dollars as in 25000.00, at most {LARGEST}", code="BAD_AMOUNT"
        )


def normalised(fields: Mapping[str, str]) -> dict[str, Any]:
    """Valid fields as the workflow takes them: the amount in US dollars, the purpose as policy knows it."""
    purpose = "_".join(fields["purpose"].lower().split())
    return {"applicant_id": fields["applicant_id"], "amount": Decimal(fields["amount"]), "purpose": purpose}


def repaired(fields: Mapping[str, str]) -> tuple[dict[str, str], str] | None:
    """The fields with an amount in one clear reading, and what was done; None where there is no such reading.

    `25.000,00 EUR` can only be twenty-five thousand euros, `25,000.00 USD` the same in dollars. `25.000` alone may be
    either, so it is left to a person.
    """
    text = fields.get("amount", "")
    if (euros := _EURO.sub("", text)) != text and (read := _number(_POINTS, euros)) is not None:
        dollars = (read * DOLLARS_PER_EURO).quantize(Decimal("0.01"))
        note = f"amount {text!r} is read as {read} euros, {dollars} dollars at {DOLLARS_PER_EURO}"
    elif (plain := _DOLLAR.sub("", text)) != text and (read := _number(_COMMAS, plain)) is not None:
        dollars, note = read, f"amount {text!r} is read as {read} dollars"
    else:
        return None
    return {**fields, "amount": str(dollars)}, note


def _number(form: re.Pattern[str], text: str) -> Decimal | None:
    found = form.fullmatch(text.strip())
    if found is None:
        return None
    whole = re.sub(r"\D", "", found[1])
    return Decimal(f"{whole}.{found[2] or '00'}")
