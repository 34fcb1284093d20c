"""Settings of this example, read from the environment when a tool needs evidence.

CASEWORK_EVIDENCE_CSV
    Path of a CSV file of applications, one row per applicant. Default: none, the fixtures are used. The columns are
    described in `csv_evidence.py`.
CASEWORK_BUREAU_URL
    Base URL of a credit bureau over HTTP; credit reports are then asked there, incomes as before. Default: none. The
    protocol is described in `http_evidence.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

EVIDENCE_CSV = "CASEWORK_EVIDENCE_CSV"
BUREAU_URL = "CASEWORK_BUREAU_URL"


@dataclass(frozen=True)
class LoanSettings:
    """Where evidence comes from."""

    evidence_csv: str | None = None
    bureau_url: str | None = None

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> LoanSettings:
        """Read both from the environment; a blank value counts as none."""
        source = os.environ if environ is None else environ
        return cls(source.get(EVIDENCE_CSV, "").strip() or None, source.get(BUREAU_URL, "").strip() or None)
