"""The limits that ship: for demos, tests, and the explicit setting `policy_fallback = fixture`."""

from __future__ import annotations

from decimal import Decimal

from casework.policy.limits import PolicyLimits

PURPOSES = (
    "car",
    "credit_card",
    "debt_consolidation",
    "educational",
    "home_improvement",
    "house",
    "major_purchase",
    "medical",
    "moving",
    "other",
    "renewable_energy",
    "small_business",
    "vacation",
    "wedding",
)
"""The usual purposes of a personal loan, normalised."""


def fixture_limits(purpose: str) -> PolicyLimits | None:
    """The shipped limits for a normalised purpose: approve from score 700 and up to a ratio of 36 %, decline under
    580 or over 50 %, two delinquencies in two years are material. None for a purpose that is not one of the usual."""
    if purpose not in PURPOSES:
        return None
    return PolicyLimits(
        purpose=purpose,
        policy_name="fixture-personal-loans",
        version=1,
        min_score=700,
        auto_approve_ratio=Decimal(36),
        hard_decline_score=580,
        hard_decline_ratio=Decimal(50),
        material_delinquencies=2,
    )
