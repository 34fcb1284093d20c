"""Settings of this example, read from the environment when a tool needs evidence.

LOAN_EVIDENCE_CSV
    Path of a CSV file of applications, one row per applicant. Default: none, the fixtures are used. The columns are
    described in `csv_evidence.py`.
LOAN_BUREAU_URL
    Base URL of a credit bureau over HTTP; credit reports are then asked there, incomes as before. Default: none. The
    protocol is described in `http_evidence.py`.
LOAN_INCOME_URL
    Base URL of a registry of incomes over HTTP; incomes are then asked there. Default: none. The protocol is described
    in `http_income.py`.

They have a prefix of their own: `CASEWORK_` belongs to the platform, which refuses what it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

EVIDENCE_CSV = "LOAN_EVIDENCE_CSV"
BUREAU_URL = "LOAN_BUREAU_URL"
INCOME_URL = "LOAN_INCOME_URL"


@dataclass(frozen=True)
class LoanSettings:
    """Where evidence comes from."""

    evidence_csv: str | None = None
    bureau_url: str | None = None
    income_url: str | None = None

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> LoanSettings:
        """Read them from the environment; a blank value counts as none."""
        source = os.environ if environ is None else environ
        return cls(*(source.get(name, "").strip() or None for name in (EVIDENCE_CSV, BUREAU_URL, INCOME_URL)))
