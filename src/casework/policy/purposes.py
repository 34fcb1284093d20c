"""Purposes are written in many ways; policy knows one name for each."""

from __future__ import annotations

import re
import unicodedata

from casework.errors import InputError

LONGEST = 100
"""Longest purpose, in characters."""

_ALIASES = {
    "auto": "car",
    "auto_loan": "car",
    "vehicle": "car",
    "cc": "credit_card",
    "credit_card_refinancing": "credit_card",
    "credit_cards": "credit_card",
    "consolidation": "debt_consolidation",
    "debt": "debt_consolidation",
    "refinancing": "debt_consolidation",
    "education": "educational",
    "student_loan": "educational",
    "home": "house",
    "home_buying": "house",
    "home_purchase": "house",
    "home_renovation": "home_improvement",
    "renovation": "home_improvement",
    "business": "small_business",
    "green_energy": "renewable_energy",
    "solar": "renewable_energy",
    "health": "medical",
    "medical_expenses": "medical",
    "moving_and_relocation": "moving",
    "relocation": "moving",
    "holiday": "vacation",
    "travel": "vacation",
}


def normalise_purpose(purpose: str) -> str:
    """The policy's name of a purpose: `"Debt Consolidation "` and `"debt-consolidation"` are `"debt_consolidation"`.

    A purpose that policy does not know keeps its normalised text, so that the missing row can be named.

    Raises:
        InputError: the purpose is blank, has no letter or digit, or is longer than 100 characters.
    """
    if len(purpose) > LONGEST:
        raise InputError(
            f"The purpose has {len(purpose)} characters, at most {LONGEST} are allowed. Name it in a few words.",
            field="purpose",
        )
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", purpose).casefold())
    if not words:
        raise InputError(
            f"The purpose {purpose!r} names nothing. Pass one, as in 'debt_consolidation'.", field="purpose"
        )
    name = "_".join(words)
    return _ALIASES.get(name, name)
