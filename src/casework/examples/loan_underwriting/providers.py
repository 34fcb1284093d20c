"""Which provider of evidence the settings choose."""

from __future__ import annotations

from functools import lru_cache

from casework.examples.loan_underwriting.csv_evidence import CsvEvidence
from casework.examples.loan_underwriting.evidence import EvidenceProvider
from casework.examples.loan_underwriting.fixtures import FixtureEvidence
from casework.examples.loan_underwriting.http_evidence import HttpEvidence
from casework.examples.loan_underwriting.http_income import HttpIncome
from casework.examples.loan_underwriting.settings import LoanSettings


def evidence_provider() -> EvidenceProvider:
    """The provider that the settings choose now."""
    return _provider(LoanSettings.load())


@lru_cache(maxsize=8)
def _provider(settings: LoanSettings) -> EvidenceProvider:
    # A file of applications is read once and kept, hence one provider per settings.
    base: EvidenceProvider = CsvEvidence(settings.evidence_csv) if settings.evidence_csv else FixtureEvidence()
    if settings.income_url:
        base = HttpIncome(settings.income_url, base)
    return HttpEvidence(settings.bureau_url, base) if settings.bureau_url else base
