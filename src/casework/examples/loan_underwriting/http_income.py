"""Incomes over HTTP: `GET {url}/incomes/{applicant_id}` gives `IncomeEvidence` as an object, each fact or null.

404: unknown applicant; 429 and 5xx: come again; others: refused. Reading leaves no trace there, so it needs no key.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import quote

from casework.errors import RetryableError, ToldError
from casework.examples.loan_underwriting.evidence import (
    CreditReport,
    Employment,
    EvidenceProvider,
    IncomeEvidence,
    cents,
    unknown_applicant,
)
from casework.examples.loan_underwriting.http_evidence import wanted_pause
from casework.values import loads

TIMEOUT = 15.0
"""Seconds for one look-up, under the deadline of the tool that makes it."""


class HttpIncome:
    """Incomes from the registry at `url`; `credit` answers the rest."""

    def __init__(self, url: str, credit: EvidenceProvider) -> None:
        self._url = url.rstrip("/")
        self._credit = credit

    async def credit_report(self, applicant_id: str, key: str) -> CreditReport:
        """From the other provider. Raises what it raises."""
        return await self._credit.credit_report(applicant_id, key)

    async def income(self, applicant_id: str) -> IncomeEvidence:
        """Look up one applicant.

        Raises:
            ToldError: the registry does not know the applicant, or refuses.
            RetryableError: it cannot be reached, is busy, or its answer cannot be read.
        """
        import httpx2  # noqa: PLC0415 - only with a registry

        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
                answer = await client.get(f"{self._url}/incomes/{quote(applicant_id, safe='')}")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise RetryableError(f"Incomes cannot be asked at {self._url}: {type(error).__name__}: {error}") from error
        if answer.status_code == 404:
            raise unknown_applicant(applicant_id, "the registry of incomes")
        if answer.status_code in (408, 425, 429) or answer.status_code >= 500:
            busy = f"The registry of incomes is busy: HTTP {answer.status_code}"
            raise RetryableError(busy, retry_after=wanted_pause(answer))
        if not answer.is_success:
            raise ToldError(f"The registry of incomes refuses: HTTP {answer.status_code}: {answer.text[:200]}")
        return _evidence(applicant_id, answer.content)


def _evidence(applicant_id: str, content: bytes) -> IncomeEvidence:
    try:
        body = loads(content)
        employment = body["employment"]
        return IncomeEvidence(
            applicant_id,
            body["application_type"],
            annual_income=_money(body["annual_income"]),
            monthly_debt=_money(body["monthly_debt"]),
            verification=body["verification"],
            employment=Employment(employment["title"], employment["years"]),
            missing=dict(body["missing"]),
        )
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise RetryableError(f"The answer of the registry of incomes cannot be read: {error!r}") from error


def _money(value: Any) -> Decimal | None:
    return None if value is None else cents(Decimal(value))
