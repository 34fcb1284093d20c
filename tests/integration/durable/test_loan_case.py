"""The reference case on real servers, from the request to the person's decision."""

from __future__ import annotations

from decimal import Decimal

from tests.integration.durable.conftest import APPLICATION, House

TOOLS = ["credit_check", "income_verification", "debt_to_income_calc", "policy_lookup"]


async def test_a_borderline_case_is_referred_asked_about_and_approved(working: House) -> None:
    """DA-9, DA-10, DA-13, DA-33. Evidence, recommendation, more information, a second recommendation, approval."""
    run_id = await working.start(APPLICATION)
    first = await working.reaches(run_id, "AWAITING_REVIEW")
    assert first.recommendation["recommendation"] == "refer"
    results = {step.name: step.result for step in await working.steps(run_id) if step.kind == "tool"}
    assert sorted(results) == sorted(TOOLS)
    assert results["credit_check"]["score"] == 665
    assert results["debt_to_income_calc"]["ratio"] == Decimal("37.89")
    assert results["policy_lookup"]["recommendation"] == "refer"
    first_review = await working.decide(run_id, "more_info", "Is the delinquency settled?")

    second = await working.reaches(run_id, "AWAITING_REVIEW", turn=2)
    second_review = await working.review(run_id)
    assert second_review.review_id != first_review.review_id
    assert "Is the delinquency settled?" in second.recommendation["rationale"]
    await working.decide(run_id, "approve")
    ended = await working.reaches(run_id, "COMPLETED")
    assert (ended.outcome, ended.turn) == ("approved", 2)
