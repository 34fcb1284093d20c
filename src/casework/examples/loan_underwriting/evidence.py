"""Evidence about applicants: what it consists of, and the port it comes through.

Money is in US dollars, exact to the cent. What is not known is None, and `missing` says why, by the name of the fact:
an absent income is a fact for the policy, not a fault of the lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal, Protocol

from casework.errors import ToldError

CENT = Decimal("0.01")

Verification = Literal["verified", "source_verified", "not_verified"]


def cents(amount: Decimal) -> Decimal:
    """An amount rounded half-up to the cent."""
    return amount.quantize(CENT, ROUND_HALF_UP)


@dataclass(frozen=True)
class CreditReport:
    """What the bureau knows. `current_debt` is what is drawn on all credit lines together."""

    applicant_id: str
    score: int | None
    open_credit_lines: int | None
    delinquencies_2y: int | None
    current_debt: Decimal | None
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Employment:
    """Who the applicant works as; `years` are full years, 10 means ten or more."""

    title: str | None
    years: int | None


@dataclass(frozen=True)
class IncomeEvidence:
    """Income and debt service. For a joint application both belong to the two applicants together."""

    applicant_id: str
    application_type: Literal["individual", "joint"]
    annual_income: Decimal | None
    monthly_debt: Decimal | None
    verification: Verification | None
    employment: Employment
    missing: Mapping[str, str] = field(default_factory=dict)


class EvidenceProvider(Protocol):
    """Where facts about applicants come from."""

    async def credit_report(self, applicant_id: str, key: str) -> CreditReport:
        """Ask the bureau; `key` is the idempotency key of the inquiry, which leaves a trace there.

        Raises:
            ToldError: the applicant is not known.
            RetryableError: the provider cannot be reached now.
        """
        ...

    async def income(self, applicant_id: str) -> IncomeEvidence:
        """Income and employment. Raises as `credit_report`."""
        ...


def unknown_applicant(applicant_id: str, where: str) -> ToldError:
    """The refusal of an applicant that a provider does not have."""
    return ToldError(f"There is no applicant {applicant_id!r} in {where}. Check the applicant id of the application.")
