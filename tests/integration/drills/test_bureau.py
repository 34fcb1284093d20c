"""The bureau of demos and drills over real HTTP: keys honoured, effects counted, incomes exact."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest

from casework.errors import RetryableError, ToldError
from casework.examples.loan_underwriting.bureau import Bureau, Handler
from casework.examples.loan_underwriting.csv_evidence import CsvEvidence
from casework.examples.loan_underwriting.fixtures import BORDERLINE, CREDIT_REPORTS, INCOMES, FixtureEvidence
from casework.examples.loan_underwriting.http_evidence import HttpEvidence
from casework.examples.loan_underwriting.http_income import HttpIncome
from casework.testing.destination import serve


@contextmanager
def serving(bureau: Bureau) -> Iterator[str]:
    """The bureau's URL while it serves."""
    server = serve(bureau, Handler, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A bureau of this test, whose arrivals are in `tmp_path`."""
    with serving(Bureau(received=tmp_path)) as found:
        yield found


async def test_the_same_key_is_one_inquiry(url: str, tmp_path: Path) -> None:
    """DA-27. A keyed repeat gets the same report and has no second effect; another key has one of its own."""
    bureau, before = HttpEvidence(url, FixtureEvidence()), time.time()
    first = await bureau.credit_report(BORDERLINE, "key-1")
    assert first == await bureau.credit_report(BORDERLINE, "key-1") == CREDIT_REPORTS[BORDERLINE]
    await bureau.credit_report(BORDERLINE, "key-2")
    after = time.time()
    counts = httpx2.get(f"{url}/counts", trust_env=False).json()
    assert counts["calls"] == {"key-1": 2, "key-2": 1}
    arrivals = counts["arrivals"]
    assert before <= arrivals["key-1"][0] <= arrivals["key-1"][1] <= arrivals["key-2"][0] <= after
    assert counts["effects"] == {"key-1": 1, "key-2": 1}
    assert counts["in_flight"] == []
    assert sorted(os.listdir(tmp_path)) == ["key-1", "key-2"]


async def test_a_key_belongs_to_one_applicant(url: str) -> None:
    """The same key for another applicant is refused, not answered with the wrong report."""
    bureau = HttpEvidence(url, FixtureEvidence())
    await bureau.credit_report("APP-1001", "key-1")
    with pytest.raises(ToldError, match="another applicant"):
        await bureau.credit_report("APP-1002", "key-1")


@pytest.mark.parametrize("applicant", list(INCOMES))
async def test_incomes_arrive_exact(url: str, applicant: str) -> None:
    """Money to the cent, missing facts with their reason, unicode as it was; namesakes are counted apart."""
    registry = HttpIncome(url, FixtureEvidence())
    assert await registry.income(applicant) == INCOMES[applicant]
    assert await registry.income(f"{applicant}.7") == replace(INCOMES[applicant], applicant_id=f"{applicant}.7")
    counts = httpx2.get(f"{url}/counts", trust_env=False).json()
    assert counts["calls"] == {f"income_verification:{applicant}": 1, f"income_verification:{applicant}.7": 1}
    debt = INCOMES[applicant].monthly_debt
    assert isinstance(debt, Decimal)


async def test_unknown_applicants_are_told(url: str) -> None:
    """The model is told; the run goes on."""
    with pytest.raises(ToldError, match="APP-9"):
        await HttpIncome(url, FixtureEvidence()).income("APP-9")
    with pytest.raises(ToldError, match="APP-9"):
        await HttpEvidence(url, FixtureEvidence()).credit_report("APP-9", "key")


async def test_a_registry_that_is_away_is_tried_again() -> None:
    """Nobody listens: passing trouble, not an answer."""
    with pytest.raises(RetryableError, match="cannot be asked"):
        await HttpIncome("http://127.0.0.1:9", FixtureEvidence()).income(BORDERLINE)


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/inquiries", b'{"applicant_id": "APP-1001"}', 400),
        ("POST", "/inquiries", b"nonsense", 400),
        ("PUT", "/latency", b'{"seconds": 1e9}', 400),
        ("PUT", "/latency", b'{"seconds": "a"}', 400),
        ("GET", "/nowhere", b"", 404),
    ],
)
def test_bad_requests_are_refused(url: str, method: str, path: str, content: bytes, status: int) -> None:
    """A destination that breaks would make a drill say the wrong thing."""
    assert httpx2.request(method, f"{url}{path}", content=content, trust_env=False).status_code == status


async def test_calls_in_flight_are_held_until_they_are_released(url: str) -> None:
    """An attempt that outlives another is made with this, in the order that the drill wants."""
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        await client.put("/latency", content='{"seconds": 25}')
        held = asyncio.create_task(HttpEvidence(url, FixtureEvidence()).credit_report(BORDERLINE, "held"))
        while (await client.get("/counts")).json()["in_flight"] != ["held"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await client.put("/latency", content='{"seconds": 0}')
        await HttpEvidence(url, FixtureEvidence()).credit_report(BORDERLINE, "quick")
        assert not held.done()
        await client.put("/release")
        assert await held == CREDIT_REPORTS[BORDERLINE]


APPLICATIONS = Path(__file__).parents[2] / "acceptance" / "applications.csv"


async def test_a_bureau_can_know_the_applicants_of_a_file() -> None:
    """DA-9. The same evidence as from the file itself, by way of a server that counts; others it does not know."""
    direct = CsvEvidence(APPLICATIONS)
    with serving(Bureau(evidence=CsvEvidence(APPLICATIONS))) as url:
        for applicant in ("FX-01", "FX-03", "FX-05"):
            assert await HttpIncome(url, FixtureEvidence()).income(applicant) == direct.income_of(applicant)
            given = await HttpEvidence(url, FixtureEvidence()).credit_report(applicant, f"key-{applicant}")
            assert replace(given, missing={}) == replace(direct.report_of(applicant), missing={})
        with pytest.raises(ToldError, match="APP-1001"):
            await HttpEvidence(url, FixtureEvidence()).credit_report("APP-1001", "key")


def test_a_bureau_refuses_a_file_that_is_no_evidence_before_it_serves(tmp_path: Path) -> None:
    """It says which columns are missing, instead of failing every inquiry later."""
    file = tmp_path / "cases.csv"
    file.write_text("applicant_id,amount\nA-1,100\n", encoding="utf-8")
    words = [sys.executable, "-m", "casework.examples.loan_underwriting.bureau", "--evidence", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "lacks the columns annual_income" in done.stderr
