"""Credit reports from a bureau over HTTP; incomes come from another provider.

`POST {url}/inquiries` with `{"applicant_id": ...}` and the header `Idempotency-Key` makes an inquiry, which stays on
the applicant's record; the same key again returns the first one's report. The answer is `{"score", "open_credit_lines",
"delinquencies_2y", "current_debt"}`, each a number or null. 404: unknown applicant; 429 and 5xx: come again; others:
refused.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from casework.errors import FatalError, RetryableError, ToldError
from casework.examples.loan_underwriting.evidence import (
    CreditReport,
    EvidenceProvider,
    IncomeEvidence,
    cents,
    unknown_applicant,
)
from casework.examples.loan_underwriting.settings import BUREAU_URL
from casework.values import loads

if TYPE_CHECKING:
    import httpx2

TIMEOUT = 15.0
"""Seconds for one inquiry, under the deadline of the tool that makes it."""

_NOT_KNOWN = "the bureau does not know it"


class HttpEvidence:
    """A bureau at `url`; `incomes` answers the rest."""

    def __init__(self, url: str, incomes: EvidenceProvider) -> None:
        self._url = url.rstrip("/")
        self._incomes = incomes

    async def credit_report(self, applicant_id: str, key: str) -> CreditReport:
        """Make one inquiry under `key`.

        Raises:
            ToldError: the bureau does not know the applicant, or refuses the inquiry.
            RetryableError: it cannot be reached, is busy, or its answer cannot be read.
            FatalError: it refuses this client.
        """
        import httpx2  # noqa: PLC0415 - only with a bureau

        headers = {"Idempotency-Key": key}
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
                answer = await client.post(
                    f"{self._url}/inquiries", json={"applicant_id": applicant_id}, headers=headers
                )
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise FatalError(f"{BUREAU_URL} is no usable address ({self._url}): {error}") from error
        except httpx2.HTTPError as error:
            raise RetryableError(
                f"The bureau at {self._url} cannot be reached: {type(error).__name__}: {error}"
            ) from error
        _check(answer, applicant_id)
        return _report(applicant_id, answer.content)

    async def income(self, applicant_id: str) -> IncomeEvidence:
        """From the other provider. Raises what it raises."""
        return await self._incomes.income(applicant_id)


def wanted_pause(answer: httpx2.Response) -> float | None:
    """The seconds after which a server wants to be asked again, where it says so in seconds."""
    said = answer.headers.get("Retry-After", "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 6 else None


def _check(answer: httpx2.Response, applicant_id: str) -> None:
    status = answer.status_code
    if 200 <= status < 300:
        return
    said = f"HTTP {status}: {answer.text[:200]}"
    if status == 404:
        raise unknown_applicant(applicant_id, "the bureau")
    if status in (408, 409, 425, 429) or status >= 500:
        raise RetryableError(f"The bureau is busy or out of order: {said}", retry_after=wanted_pause(answer))
    if status in (401, 403):
        raise FatalError(f"The bureau refuses this client: {said}")
    raise ToldError(f"The bureau refuses the inquiry: {said}")


def _report(applicant_id: str, content: bytes) -> CreditReport:
    try:
        body = loads(content)
        if not isinstance(body, dict):
            raise ValueError("no object")
        numbers = {name: _number(body.get(name), name) for name in ("score", "open_credit_lines", "delinquencies_2y")}
        debt = _number(body.get("current_debt"), "current_debt")
    except (ValueError, RecursionError) as error:
        raise RetryableError(f"The bureau's answer cannot be read: {error}") from error
    whole = {name: None if value is None else int(value) for name, value in numbers.items()}
    facts: dict[str, Any] = {**whole, "current_debt": None if debt is None else cents(debt)}
    return CreditReport(applicant_id, **facts, missing={n: _NOT_KNOWN for n, v in facts.items() if v is None})


def _number(value: object, name: str) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"{name} is no number")
    return Decimal(value)
