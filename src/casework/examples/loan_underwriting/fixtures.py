"""Applicants that ship, one for each way a case can go."""

from __future__ import annotations

from decimal import Decimal

from casework.examples.loan_underwriting.evidence import (
    CreditReport,
    Employment,
    IncomeEvidence,
    Verification,
    unknown_applicant,
)

BORDERLINE = "APP-1001"
"""Score 665, income 76,000, debt 2,400 a month (37.89 %), one delinquency that is not material: refer."""
APPROVABLE = "APP-1002"
"""Every rule for automatic approval holds: approve."""
DECLINABLE = "APP-1003"
"""Score under and ratio over the hard limits: decline."""
THIN_FILE = "APP-1004"
"""No score, because the bureau has no history: refer, with that reason."""
NO_INCOME = "APP-1005"
"""No income is reported, so there is no ratio: refer, with that reason."""
DELINQUENT = "APP-1006"
"""Good score and ratio, three delinquencies in two years: refer."""
JOINT = "APP-1007"
"""Two people apply; their income and debt together make the ratio: approve."""

_NO_HISTORY = "the bureau has no credit history of this applicant"
_NOTHING_REPORTED = "the applicant reported no income"


def _credit(applicant_id: str, score: int | None, lines: int, delinquencies: int | None, debt: str) -> CreditReport:
    missing = {
        name: _NO_HISTORY for name, value in (("score", score), ("delinquencies_2y", delinquencies)) if value is None
    }
    return CreditReport(applicant_id, score, lines, delinquencies, Decimal(debt), missing)


def _income(
    applicant_id: str,
    income: str | None,
    debt: str,
    employment: Employment,
    verification: Verification = "verified",
    *,
    joint: bool = False,
) -> IncomeEvidence:
    return IncomeEvidence(
        applicant_id,
        "joint" if joint else "individual",
        None if income is None else Decimal(income),
        Decimal(debt),
        verification,
        employment,
        {"annual_income": _NOTHING_REPORTED} if income is None else {},
    )


CREDIT_REPORTS: dict[str, CreditReport] = {
    report.applicant_id: report
    for report in (
        _credit(BORDERLINE, 665, 9, 1, "18250.00"),
        _credit(APPROVABLE, 760, 12, 0, "9410.55"),
        _credit(DECLINABLE, 560, 4, 1, "27900.00"),
        _credit(THIN_FILE, None, 0, None, "0.00"),
        _credit(NO_INCOME, 712, 7, 0, "3120.00"),
        _credit(DELINQUENT, 705, 11, 3, "14800.20"),
        _credit(JOINT, 731, 15, 0, "22040.75"),
    )
}

INCOMES: dict[str, IncomeEvidence] = {
    evidence.applicant_id: evidence
    for evidence in (
        _income(BORDERLINE, "76000.00", "2400.00", Employment("Site engineer", 4)),
        _income(APPROVABLE, "98000.00", "1950.00", Employment("Pharmacist", 10)),
        _income(DECLINABLE, "41000.00", "1900.00", Employment("Driver", 1), "source_verified"),
        _income(THIN_FILE, "52000.00", "600.00", Employment("Nurse", 0)),
        _income(NO_INCOME, None, "450.00", Employment(None, None), "not_verified"),
        _income(DELINQUENT, "88000.00", "2000.00", Employment("Électricien", 7)),
        _income(JOINT, "121500.00", "3120.40", Employment("Teacher", 6), joint=True),
    )
}


class FixtureEvidence:
    """The applicants above, from memory."""

    async def credit_report(self, applicant_id: str, key: str) -> CreditReport:  # noqa: ARG002 - part of the port
        """The report of a shipped applicant.

        Raises:
            ToldError: there is no such applicant.
        """
        try:
            return CREDIT_REPORTS[applicant_id]
        except KeyError:
            raise unknown_applicant(applicant_id, "the fixtures") from None

    async def income(self, applicant_id: str) -> IncomeEvidence:
        """The income of a shipped applicant.

        Raises:
            ToldError: there is no such applicant.
        """
        try:
            return INCOMES[applicant_id]
        except KeyError:
            raise unknown_applicant(applicant_id, "the fixtures") from None
