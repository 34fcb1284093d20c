"""The four tools of the underwriter, over the fixtures and over a CSV file of our own."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casework.agents import Repeat, Tool, ToolContext
from casework.agents.invoke import invoke
from casework.errors import FatalError, PolicyUnavailableError, ToldError
from casework.examples.loan_underwriting import app, fixtures
from casework.examples.loan_underwriting.settings import EVIDENCE_CSV
from casework.examples.loan_underwriting.tools import (
    TOOLS,
    credit_check,
    debt_to_income_calc,
    income_verification,
    policy_lookup,
)
from casework.policy import PolicyReading
from casework.values import Plain, dumps, loads, plain

REAL_DATA = Path(os.environ.get("CASEWORK_TEST_DATA", "../shared/data")) / "loan_applications.csv"

HEADING = (
    "applicant_id,amount,purpose,annual_income,income_verification,debt_to_income_pct,delinquencies_2y,"
    "open_credit_lines,total_credit_utilized,employment_title,employment_years,application_type,"
    "annual_income_joint,debt_to_income_joint_pct,credit_score"
)
OWN_ROWS = """\
A-1,28000,moving,90000.0,Verified,18.01,0,10,38767,  global   CONFIG engineer ,3.0,individual,,,718
A-2,23000,credit_card,35000.0,Verified,57.96,0,16,52722,"hr, payroll",10.0,joint,57000.0,37.66,718
A-3,5000,other,0.0,Not Verified,,2,9,34997,,,individual,,,700
A-4,5000,other,0.0,Not Verified,,0,9,34997,,,joint,167250.0,14.92,700
A-5,5000,car,abc,Odd,NaN,-1,1.5,1e99,\u00c9lectricien \u2603,x,individual,,,
A-6,100,car,1500.00,Verified,33.33,0,1,10,clerk,0.0,individual,,,790
A-7,100,car,1,Verified,1,0,1,1,a,1,individual,,,700
A-7,100,car,1,Verified,1,0,1,1,b,1,individual,,,700
"""
Call = Callable[[Tool, ToolContext, Mapping[str, Any]], Awaitable[Plain]]


class ShippedPolicy:
    """The shipped limits, as a source."""

    async def read(self, purpose: str) -> PolicyReading:
        limits = app.fixture_limits(purpose)
        if limits is None:
            raise PolicyUnavailableError(f"no row for {purpose}")
        return PolicyReading(limits, "fixture_fallback")


def case(applicant: str, purpose: str = "debt_consolidation", **evidence: Any) -> ToolContext:
    given = {"applicant_id": applicant, "amount": Decimal(12000), "purpose": purpose}
    return ToolContext("default", UUID(int=1), "p", "key", input=given, evidence=evidence, policies=ShippedPolicy())


async def worked(applicant: str, purpose: str = "debt_consolidation", call: Call = invoke) -> dict[str, Any]:
    """All four tools in their order; every result goes through JSON, as in the ledger."""
    results: dict[str, Any] = {}
    calls: tuple[tuple[Tool, Mapping[str, Any]], ...] = (
        (credit_check, {"applicant_id": applicant}),
        (income_verification, {"applicant_id": applicant}),
        (debt_to_income_calc, {}),
        (policy_lookup, {"purpose": purpose}),
    )
    for tool, arguments in calls:
        results[tool.name] = loads(dumps(await call(tool, case(applicant, purpose, **results), arguments)))
    return results


async def plainly(tool: Tool, context: ToolContext, arguments: Mapping[str, Any]) -> Plain:
    """What the tool gives, without the thread and the event loop of each `invoke`, which take most of its time."""
    return plain(await tool.function(context, **tool.bind(arguments)), tool.name)


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "applications of ours.csv"
    path.write_text(f"{HEADING}\n{OWN_ROWS}", encoding="utf-8")
    monkeypatch.setenv(EVIDENCE_CSV, str(path))
    return path


async def test_the_borderline_applicant() -> None:
    """DA-10. 665, 76,000 a year, 2,400 a month, 37.89 %, one delinquency: refer; every digit exact."""
    found = await worked(fixtures.BORDERLINE)
    credit, income, ratio, policy = (found[tool.name] for tool in TOOLS)
    assert (credit["score"], credit["delinquencies_2y"]) == (665, 1)
    assert (str(income["annual_income"]), str(income["monthly_debt"])) == ("76000.00", "2400.00")
    assert str(ratio["ratio"]) == "37.89"
    assert policy["recommendation"] == "refer"


@pytest.mark.parametrize(
    ("applicant", "recommendation", "because"),
    [
        (fixtures.APPROVABLE, "approve", "Every rule for automatic approval holds"),
        (fixtures.DECLINABLE, "decline", "hard_decline_score"),
        (fixtures.THIN_FILE, "refer", "no credit history"),
        (fixtures.NO_INCOME, "refer", "reported no income"),
        (fixtures.DELINQUENT, "refer", "material_delinquencies"),
        (fixtures.JOINT, "approve", "Every rule"),
    ],
)
async def test_every_shipped_applicant_goes_its_way(applicant: str, recommendation: str, because: str) -> None:
    """DA-9, DA-11. Missing evidence is a fact for the policy: refer, with the reason."""
    policy = (await worked(applicant))["policy_lookup"]
    assert policy["recommendation"] == recommendation
    assert because in policy["rationale"]


async def test_a_joint_application_counts_the_joint_income_and_ratio(own_file: Path) -> None:
    """DA-9. 37.66 of 57,000, not 57.96 of 35,000; money to the cent."""
    found = await worked("A-2")
    income = found["income_verification"]
    assert income["application_type"] == "joint"
    assert (str(income["annual_income"]), str(income["monthly_debt"])) == ("57000.00", "1788.85")
    assert str(found["debt_to_income_calc"]["ratio"]) == "37.66"
    assert str((await worked("A-4"))["debt_to_income_calc"]["ratio"]) == "14.92"


async def test_an_applicant_without_income_has_no_ratio_and_a_reason(own_file: Path) -> None:
    """DA-11. A zero income divides nothing."""
    found = await worked("A-3")
    assert found["debt_to_income_calc"]["ratio"] is None
    assert found["debt_to_income_calc"]["missing"] == "the applicant reported no income"
    assert found["policy_lookup"]["recommendation"] == "refer"


async def test_odd_cells_become_missing_facts(own_file: Path) -> None:
    """DA-9. Real files hold such cells; none of them raises, each is named."""
    found = await worked("A-5", "car")
    assert found["credit_check"]["missing"] == {
        "score": "credit_score is empty in the application",
        "delinquencies_2y": "delinquencies_2y is no usable number in the application: '-1'",
        "open_credit_lines": "open_credit_lines is no whole number in the application: 1.5",
        "current_debt": "total_credit_utilized is no usable number in the application: '1e99'",
    }
    assert found["income_verification"]["verification"] is None
    assert found["income_verification"]["employment"] == {"title": "Électricien ☃", "years": None}
    assert found["policy_lookup"]["recommendation"] == "refer"


async def test_titles_lose_odd_spacing_only(own_file: Path) -> None:
    """DA-9. Employment evidence as typed, commas and case kept."""
    assert (await worked("A-1"))["income_verification"]["employment"] == {"title": "global CONFIG engineer", "years": 3}
    assert (await worked("A-2"))["income_verification"]["employment"]["title"] == "hr, payroll"
    assert (await worked("A-3"))["income_verification"]["employment"] == {"title": None, "years": None}


async def test_applicants_that_cannot_be_found_are_told(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-18. The model is told; nothing is made up, and a doubled row is not trusted."""
    with pytest.raises(ToldError, match=r"no applicant 'A-99' in applications of ours\.csv"):
        await invoke(credit_check, case("A-99"), {"applicant_id": "A-99"})
    with pytest.raises(ToldError, match="has 2 rows"):
        await invoke(credit_check, case("A-7"), {"applicant_id": "A-7"})
    monkeypatch.delenv(EVIDENCE_CSV)
    with pytest.raises(ToldError, match="no applicant 'A-1' in the fixtures"):
        await invoke(income_verification, case("A-1"), {"applicant_id": "A-1"})


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a,b\n1,2\n"])
async def test_a_file_that_cannot_be_read_names_the_setting(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. A fault of the installation fails the run, and says which setting to mend."""
    path = tmp_path / "x.csv"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(EVIDENCE_CSV, str(path))
    with pytest.raises(FatalError, match=EVIDENCE_CSV):
        await invoke(credit_check, case("A-1"), {"applicant_id": "A-1"})


async def test_a_case_asks_about_its_own_applicant_and_purpose() -> None:
    """AW-17. The gate is in the runtime: no credit inquiry on others, no policy with kinder limits."""
    ctx = case(fixtures.BORDERLINE, "car")
    with pytest.raises(ToldError, match="is about applicant 'APP-1001', not 'APP-1002'"):
        await invoke(credit_check, ctx, {"applicant_id": fixtures.APPROVABLE})
    with pytest.raises(ToldError, match="is for 'car', not 'house'"):
        await invoke(policy_lookup, ctx, {"purpose": "house"})


async def test_the_ratio_takes_no_numbers_from_the_model() -> None:
    """DA-9. It is computed from evidence; without any it says what to call."""
    with pytest.raises(ToldError, match="takes no arguments"):
        await invoke(debt_to_income_calc, case(fixtures.BORDERLINE), {"annual_income": 1_000_000})
    empty = await invoke(debt_to_income_calc, case(fixtures.BORDERLINE), {})
    assert empty["ratio"] is None
    assert "call income_verification" in empty["missing"]


async def test_policy_without_evidence_refers() -> None:
    """DA-11. Asked too early, or after a tool that failed: refer, with the reason."""
    result = await invoke(policy_lookup, case(fixtures.BORDERLINE), {"purpose": "debt_consolidation"})
    assert result["recommendation"] == "refer"
    assert "credit_check has no result" in result["rationale"]


async def test_a_purpose_without_policy_fails_closed() -> None:
    """DA-42. No row, no evaluation."""
    with pytest.raises(PolicyUnavailableError):
        await invoke(policy_lookup, case(fixtures.BORDERLINE, "yacht"), {"purpose": "yacht"})


def test_the_tools_declare_how_they_repeat() -> None:
    """DA-27. The inquiry is keyed, because it leaves a trace; the others only read."""
    assert [(tool.name, tool.effects, tool.repeat) for tool in TOOLS] == [
        ("credit_check", True, Repeat.KEYED),
        ("income_verification", False, Repeat.IDEMPOTENT),
        ("debt_to_income_calc", False, Repeat.IDEMPOTENT),
        ("policy_lookup", False, Repeat.IDEMPOTENT),
    ]
    assert all(tool.timeout < 60 for tool in TOOLS)


@pytest.mark.skipif(not REAL_DATA.exists(), reason=f"the real loan applications are not at {REAL_DATA}")
async def test_all_real_applications(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-9. 5,000 real rows: no tool raises, and each ratio is the file's own to the last digit."""
    monkeypatch.setenv(EVIDENCE_CSV, str(REAL_DATA))
    said: Counter[str] = Counter()
    with REAL_DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found = await worked(row["applicant_id"], row["purpose"], plainly)
            joint = "_joint" if row["application_type"] == "joint" else ""
            ratio = row[f"debt_to_income{joint}_pct"]
            assert found["debt_to_income_calc"]["ratio"] == (Decimal(ratio) if ratio else None), row["applicant_id"]
            said[found["policy_lookup"]["recommendation"]] += 1
    assert sum(said.values()) == 5000
    assert said.keys() >= {"approve", "refer"}
