"""Loan applications out of a CSV file, submitted as a user does, reach a reviewer with exact evidence."""

from __future__ import annotations

import csv
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from casework.examples.loan_underwriting.application import POLICY
from casework.values import loads
from tests.acceptance.conftest import FIXTURE, REAL, Row, Running, read_rows, real_rows

CENT = Decimal("0.01")
TOOLS = {"credit_check", "income_verification", "debt_to_income_calc", "policy_lookup"}


@pytest.fixture(scope="module", autouse=True)
def _policy(stack: Running) -> None:
    loaded = stack.casework("policy", "load", str(POLICY), "--json")
    assert loaded.code == 0, loaded.err


async def test_applications_from_a_file_reach_their_reviewers(stack: Running) -> None:
    """DA-9. Every evidence row is there, and numbers are those of the file to the cent."""
    runs = await submit(stack, FIXTURE, len(read_rows(FIXTURE)))
    for row in read_rows(FIXTURE):
        check(runs[row["applicant_id"]], row)


async def test_missing_evidence_is_a_fact_for_the_policy(stack: Running) -> None:
    """DA-11. What is missing fails its rules with the reason, and policy refers."""
    runs = await submit(stack, FIXTURE, len(read_rows(FIXTURE)))
    for applicant, rule, reason in (
        ("FX-04", "automatic_approval_ratio", "debt_to_income_pct is empty"),
        ("FX-05", "minimum_score", "credit_score is empty"),
        ("FX-05", "material_delinquencies", "delinquencies_2y is empty"),
        ("FX-07", "automatic_approval_ratio", "'n/a'"),
    ):
        evaluation = runs[applicant]["policy"]["evaluation"]
        assert evaluation["recommendation"] == "refer"
        failed = next(each for each in evaluation["rules"] if each["rule"] == rule)
        assert failed["result"] == "fail"
        assert failed["actual"] is None
        assert reason in failed["note"] or reason in evaluation["rationale"] or "no income" in failed["note"]


async def test_the_same_file_again_starts_nothing_twice(stack: Running) -> None:
    """DA-8. Each row has its idempotency key: the same runs are answered."""
    first = stack.casework("runs", "start", "loan-underwriting", "-f", str(FIXTURE), "--json").json
    again = stack.casework("runs", "start", "loan-underwriting", "-f", str(FIXTURE), "--json").json
    assert [row["run_id"] for row in first["rows"]] == [row["run_id"] for row in again["rows"]]
    assert again["started"] == 0


@pytest.mark.skipif(not REAL.exists(), reason=f"the real applications are not at {REAL} (CASEWORK_TEST_DATA)")
async def test_real_applications_reach_their_reviewers(stack: Running, tmp_path: Path) -> None:
    """DA-9. 20 real applications, joint ones and such without a ratio of their own included."""
    rows = real_rows()
    path = tmp_path / "applications.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert sum(row["application_type"] == "joint" for row in rows) >= 6
    assert sum(not row["debt_to_income_pct"] for row in rows) >= 4
    runs = await submit(stack, path, 20)
    for row in rows:
        check(runs[row["applicant_id"]], row)


async def submit(stack: Running, path: Path, number: int) -> dict[str, dict[str, Any]]:
    """Start a run for each row of the file; their details at rest, by applicant."""
    started = stack.casework("runs", "start", "loan-underwriting", "-f", str(path), "--json")
    assert started.code == 0, started.err
    report = loads(started.out)
    assert report["failed"] == 0
    assert len(report["rows"]) == number
    runs = await stack.at_rest([row["run_id"] for row in report["rows"]])
    return {run["input"]["applicant_id"]: run for run in runs}


def check(run: dict[str, Any], row: Row) -> None:
    """Hold a run's evidence against its row of the file, computed here anew."""
    joint = row["application_type"] == "joint"
    income = number(row["annual_income_joint" if joint else "annual_income"])
    ratio = number(row["debt_to_income_joint_pct" if joint else "debt_to_income_pct"])
    debt = None if income is None or ratio is None else cents(ratio / 100 * income / 12)
    evidence = run["evidence"]
    assert set(evidence) == TOOLS
    assert evidence["income_verification"]["annual_income"] == income
    assert evidence["income_verification"]["monthly_debt"] == debt
    assert evidence["debt_to_income_calc"]["ratio"] == (ratio if income else None)
    assert evidence["debt_to_income_calc"]["monthly_debt"] == debt
    assert evidence["credit_check"]["score"] == number(row["credit_score"])
    assert evidence["credit_check"]["delinquencies_2y"] == number(row["delinquencies_2y"])
    said = evidence["policy_lookup"]["recommendation"]
    wanted = expected(number(row["credit_score"]), ratio if income else None, number(row["delinquencies_2y"]))
    assert said == wanted == run["recommendation"]["recommendation"], row
    assert run["input"]["amount"] == Decimal(row["amount"])


def expected(score: Decimal | None, ratio: Decimal | None, delinquencies: Decimal | None) -> str:
    """The fixture policy in words of its own: 700 and 36 %, 580 and 50 %, two delinquencies."""
    if score is None or ratio is None or delinquencies is None:
        return "refer"
    if score < 580 or ratio > 50:
        return "decline"
    return "approve" if score >= 700 and ratio <= 36 and delinquencies < 2 else "refer"


def number(cell: str) -> Decimal | None:
    """A cell as a number; None where it is none."""
    return Decimal(cell) if cell.replace(".", "", 1).isdigit() else None


def cents(amount: Decimal) -> Decimal:
    """Rounded half-up to the cent."""
    return amount.quantize(CENT, ROUND_HALF_UP)
