"""What the underwriter may do. Numbers come from evidence, never from what the model says."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any

from pydantic import Field

from casework.agents import Repeat, ToolContext, tool
from casework.errors import ToldError
from casework.examples.loan_underwriting.evidence import (
    CENT,
    CreditReport,
    IncomeEvidence,
)
from casework.examples.loan_underwriting.providers import evidence_provider
from casework.policy import PolicyResult, evaluate, normalise_purpose

ApplicantId = Annotated[
    str, Field(min_length=1, max_length=64, description="The applicant id of the application, as in APP-1001.")
]
Purpose = Annotated[str, Field(min_length=1, max_length=100, description="The purpose of the loan, as applied for.")]


@tool(version="1", repeat=Repeat.KEYED, timeout=20)
async def credit_check(ctx: ToolContext, applicant_id: ApplicantId) -> CreditReport:
    """Ask the credit bureau: score, open credit lines, delinquencies in two years, current debt in US dollars.

    The inquiry stays on the applicant's record, so ask once. Facts that are not known are null, with the reason under
    `missing`.
    """
    return await evidence_provider().credit_report(_own_applicant(ctx, applicant_id), ctx.key)


@tool(version="1", effects=False, timeout=20)
async def income_verification(ctx: ToolContext, applicant_id: ApplicantId) -> IncomeEvidence:
    """Look up annual income and monthly debt in US dollars, whether the income is verified, and employment.

    For a joint application both belong to the two applicants together. Facts that are not known are null, with the
    reason under `missing`.
    """
    return await evidence_provider().income(_own_applicant(ctx, applicant_id))


@tool(version="1", effects=False, timeout=5)
async def debt_to_income_calc(ctx: ToolContext) -> dict[str, Any]:
    """Compute the debt-to-income ratio in percent from the income evidence of this case. Takes no numbers.

    `ratio` is null where it cannot be computed, with the reason under `missing`.
    """
    evidence = _evidence(ctx, "income_verification")
    if evidence is None:
        return _no_ratio(None, None, "there is no income evidence yet: call income_verification, then this again")
    income, debt = _decimal(evidence.get("annual_income")), _decimal(evidence.get("monthly_debt"))
    reasons = evidence.get("missing") or {}
    if income is None:
        return _no_ratio(income, debt, reasons.get("annual_income", "the annual income is not known"))
    if income == 0:
        return _no_ratio(income, debt, "the applicant reported no income")
    if debt is None:
        return _no_ratio(income, debt, reasons.get("monthly_debt", "the monthly debt is not known"))
    ratio = (debt * 12 / income * 100).quantize(CENT, ROUND_HALF_UP)
    return {"ratio": ratio, "annual_income": income, "monthly_debt": debt, "missing": None}


@tool(version="1", effects=False, timeout=15)
async def policy_lookup(ctx: ToolContext, purpose: Purpose) -> PolicyResult:
    """Hold the evidence of this case against the governed policy for its purpose.

    Call it when credit_check, income_verification and debt_to_income_calc have answered. Gives every rule with its
    threshold, the actual value and whether it passes, and what policy recommends. Missing evidence means refer.
    """
    _own_purpose(ctx, purpose)
    credit, ratio = _evidence(ctx, "credit_check"), _evidence(ctx, "debt_to_income_calc")
    unknown = (credit or {}).get("missing") or {}
    absent = "credit_check has no result in this case"
    missing = {
        "score": unknown.get("score", absent if credit is None else "the score is not known"),
        "delinquencies": unknown.get("delinquencies_2y", absent if credit is None else "delinquencies are not known"),
        "ratio": (ratio or {}).get("missing") or "debt_to_income_calc has no result in this case",
    }
    return evaluate(
        await ctx.policy(purpose),
        score=_whole((credit or {}).get("score")),
        ratio=_decimal((ratio or {}).get("ratio")),
        delinquencies=_whole((credit or {}).get("delinquencies_2y")),
        missing=missing,
    )


TOOLS = (credit_check, income_verification, debt_to_income_calc, policy_lookup)


def _own_applicant(ctx: ToolContext, applicant_id: str) -> str:
    """A case asks about its own applicant and nobody else, whatever the model was talked into."""
    wanted, own = applicant_id.strip(), ctx.input.get("applicant_id")
    if own is not None and wanted != str(own).strip():
        raise ToldError(f"This case is about applicant {own!r}, not {wanted!r}. Ask about {own!r}.")
    return wanted


def _own_purpose(ctx: ToolContext, purpose: str) -> None:
    """The policy is that of the purpose applied for, not of one with kinder limits."""
    own = ctx.input.get("purpose")
    if own is not None and normalise_purpose(purpose) != normalise_purpose(str(own)):
        raise ToldError(f"This application is for {str(own)!r}, not {purpose!r}. Look up the policy of {str(own)!r}.")


def _evidence(ctx: ToolContext, name: str) -> Mapping[str, Any] | None:
    found = ctx.evidence.get(name)
    return found if isinstance(found, Mapping) else None


def _no_ratio(income: Decimal | None, debt: Decimal | None, reason: str) -> dict[str, Any]:
    return {"ratio": None, "annual_income": income, "monthly_debt": debt, "missing": reason}


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    return Decimal(value)


def _whole(value: object) -> int | None:
    number = _decimal(value)
    return None if number is None else int(number)
