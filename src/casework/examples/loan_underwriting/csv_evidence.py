"""Evidence from a CSV file of applications, one row per applicant, as lenders export them.

Columns: applicant_id, annual_income, income_verification (Verified, Source Verified, Not Verified), debt_to_income_pct,
delinquencies_2y, open_credit_lines, total_credit_utilized, employment_title, employment_years, application_type
(individual, joint), annual_income_joint, debt_to_income_joint_pct, credit_score. More columns are ignored. For a joint
application the joint income and the joint ratio count. Monthly debt = ratio / 100 * annual income / 12, to the cent.

A cell that is empty or no number becomes a missing fact with its reason: real files have such cells.
"""

from __future__ import annotations

import csv
import threading
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from casework.errors import FatalError, ToldError
from casework.examples.loan_underwriting.evidence import (
    CreditReport,
    Employment,
    IncomeEvidence,
    Verification,
    cents,
    unknown_applicant,
)
from casework.examples.loan_underwriting.settings import EVIDENCE_CSV

_NEEDED = ("applicant_id", "annual_income", "debt_to_income_pct", "credit_score", "delinquencies_2y")
_VERIFICATIONS: Mapping[str, Verification] = {
    "verified": "verified",
    "source verified": "source_verified",
    "not verified": "not_verified",
}
_LARGEST = Decimal(10) ** 15

Row = Mapping[str, str]


class CsvEvidence:
    """The applications of one file, read when the first is asked for."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._rows: dict[str, list[Row]] | None = None
        self._lock = threading.Lock()

    async def credit_report(self, applicant_id: str, key: str) -> CreditReport:  # noqa: ARG002 - part of the port
        """As `report_of`."""
        return self.report_of(applicant_id)

    async def income(self, applicant_id: str) -> IncomeEvidence:
        """As `income_of`."""
        return self.income_of(applicant_id)

    def report_of(self, applicant_id: str) -> CreditReport:
        """The bureau's facts of the applicant's row.

        Raises:
            ToldError: no row, or more than one, has this applicant.
            FatalError: the file cannot be read.
        """
        facts = _Facts(self._row(applicant_id))
        return CreditReport(
            applicant_id,
            score=facts.whole("score", "credit_score"),
            open_credit_lines=facts.whole("open_credit_lines", "open_credit_lines"),
            delinquencies_2y=facts.whole("delinquencies_2y", "delinquencies_2y"),
            current_debt=facts.money("current_debt", "total_credit_utilized"),
            missing=facts.missing,
        )

    def income_of(self, applicant_id: str) -> IncomeEvidence:
        """Income and debt service of the applicant's row. Raises as `report_of`."""
        row = self._row(applicant_id)
        facts = _Facts(row)
        joint = row.get("application_type", "").strip().lower() == "joint"
        income = facts.money("annual_income", "annual_income_joint" if joint else "annual_income")
        ratio = facts.number("monthly_debt", "debt_to_income_joint_pct" if joint else "debt_to_income_pct")
        if income is None and ratio is not None:
            facts.missing["monthly_debt"] = "it follows from the income, which is not known"
        return IncomeEvidence(
            applicant_id,
            "joint" if joint else "individual",
            annual_income=income,
            monthly_debt=None if income is None or ratio is None else cents(ratio / 100 * income / 12),
            verification=_VERIFICATIONS.get(row.get("income_verification", "").strip().lower()),
            employment=Employment(
                _words(row.get("employment_title", "")), facts.whole("employment_years", "employment_years")
            ),
            missing=facts.missing,
        )

    def read(self) -> dict[str, list[Row]]:
        """The file's rows by applicant, read once.

        Raises:
            FatalError: the file cannot be read.
        """
        with self._lock:
            if self._rows is None:
                self._rows = _read(self._path)
            return self._rows

    def _row(self, applicant_id: str) -> Row:
        found = self.read().get(applicant_id.strip(), [])
        if not found:
            raise unknown_applicant(applicant_id, self._path.name)
        if len(found) > 1:
            raise ToldError(
                f"Applicant {applicant_id!r} has {len(found)} rows in {self._path.name}, so none can be trusted. "
                "Refer the case to a person."
            )
        return found[0]


class _Facts:
    """Cells of one row read as numbers; `missing` collects why one could not be."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.missing: dict[str, str] = {}

    def number(self, fact: str, column: str) -> Decimal | None:
        """The number in `column`, None where there is none."""
        cell = self._row.get(column, "").strip()
        if not cell:
            self.missing[fact] = f"{column} is empty in the application"
            return None
        try:
            value = Decimal(cell)
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not 0 <= value < _LARGEST:
            self.missing[fact] = f"{column} is no usable number in the application: {cell[:40]!r}"
            return None
        return value

    def whole(self, fact: str, column: str) -> int | None:
        """A whole number; `10.0` is one."""
        value = self.number(fact, column)
        if value is not None and value != value.to_integral_value():
            self.missing[fact] = f"{column} is no whole number in the application: {value}"
            return None
        return None if value is None else int(value)

    def money(self, fact: str, column: str) -> Decimal | None:
        """An amount in cents."""
        value = self.number(fact, column)
        return None if value is None else cents(value)


def _words(text: str) -> str | None:
    """A title without odd spacing; None where it says nothing."""
    return " ".join(text.split()) or None


def _read(path: Path) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            lacking = [column for column in _NEEDED if column not in (reader.fieldnames or ())]
            if lacking:
                raise FatalError(
                    f"{path} lacks the columns {', '.join(lacking)}. Correct the file that {EVIDENCE_CSV} names."
                )
            for row in reader:
                rows[(row["applicant_id"] or "").strip()].append({k: v for k, v in row.items() if isinstance(v, str)})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FatalError(f"{path} cannot be read: {error}. Set {EVIDENCE_CSV} to a CSV file in UTF-8.") from error
    rows.pop("", None)
    return dict(rows)
