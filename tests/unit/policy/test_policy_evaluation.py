"""Evidence against limits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import InputError
from casework.policy import PolicyLimits, PolicyReading, evaluate, normalise_purpose
from casework.values import dumps, loads, plain

LIMITS = PolicyLimits(
    purpose="debt_consolidation",
    policy_name="personal-loans",
    version=1,
    min_score=700,
    auto_approve_ratio=Decimal(36),
    hard_decline_score=580,
    hard_decline_ratio=Decimal(50),
    material_delinquencies=2,
)
READING = PolicyReading(LIMITS)


def test_the_borderline_applicant_is_referred() -> None:
    """DA-10. Score 665, ratio 37.89 %, one delinquency that is not material."""
    result = evaluate(READING, score=665, ratio=Decimal("37.89"), delinquencies=1)
    assert result.recommendation == "refer"
    assert {rule.rule: rule.result for rule in result.rules} == {
        "hard_decline_score": "pass",
        "hard_decline_ratio": "pass",
        "minimum_score": "fail",
        "automatic_approval_ratio": "fail",
        "material_delinquencies": "pass",
    }


@pytest.mark.parametrize(
    ("score", "ratio", "delinquencies", "expected"),
    [
        (700, "36", 1, "approve"),
        (700, "36.00", 0, "approve"),
        (699, "36", 0, "refer"),
        (700, "36.01", 0, "refer"),
        (700, "36", 2, "refer"),
        (580, "50", 0, "refer"),
        (579, "10", 0, "decline"),
        (800, "50.01", 0, "decline"),
    ],
)
def test_each_limit_counts_on_its_own_side(score: int, ratio: str, delinquencies: int, expected: str) -> None:
    """DA-10. At 700 and at 36 % approve; under 580 and over 50 % decline; two delinquencies are material."""
    assert evaluate(READING, score=score, ratio=Decimal(ratio), delinquencies=delinquencies).recommendation == expected


def test_the_result_records_everything_needed_to_check_it_later() -> None:
    """DA-11. Rule, threshold, actual value, pass or fail; source, name and version of the policy, rationale."""
    reading = PolicyReading(LIMITS, "fixture_fallback", reason="no row")
    made = loads(dumps(plain(evaluate(reading, score=665, ratio=Decimal("37.89"), delinquencies=1))))
    assert made["rules"][2] == {
        "rule": "minimum_score",
        "comparison": ">=",
        "threshold": 700,
        "actual": 665,
        "result": "fail",
        "note": None,
    }
    assert (made["source"], made["source_reason"]) == ("fixture_fallback", "no row")
    assert (made["policy_name"], made["version"], made["purpose"]) == (
        "personal-loans",
        1,
        "debt_consolidation",
    )
    assert "minimum_score wants score >= 700, found 665" in made["rationale"]
    assert str(made["rules"][3]["actual"]) == "37.89"


def test_missing_evidence_is_referred_with_the_reason() -> None:
    """DA-11. A fact for the policy, not an exception; even a broken hard limit goes to a person then."""
    result = evaluate(
        READING, score=500, ratio=None, delinquencies=0, missing={"ratio": "the applicant reported no income"}
    )
    assert result.recommendation == "refer"
    assert result.rationale.startswith("Evidence is missing: the applicant reported no income.")
    assert "hard_decline_score" in result.rationale
    (rule,) = (rule for rule in result.rules if rule.rule == "automatic_approval_ratio")
    assert (rule.result, rule.actual, rule.note) == ("fail", None, "the applicant reported no income")


@given(
    st.none() | st.integers(),
    st.none() | st.decimals(),
    st.none() | st.integers(),
    st.builds(replace, st.just(LIMITS), min_score=st.integers(0, 900), auto_approve_ratio=st.decimals(0, 100)),
)
def test_no_evidence_makes_it_raise_and_only_whole_evidence_approves(
    score: int | None, ratio: Decimal | None, delinquencies: int | None, row: PolicyLimits
) -> None:
    """DA-11, DA-12. Approve only where every rule passes; decline only on complete evidence; never an exception."""
    result = evaluate(PolicyReading(row), score=score, ratio=ratio, delinquencies=delinquencies)
    complete = score is not None and delinquencies is not None and ratio is not None and ratio.is_finite()
    assert (result.recommendation == "approve") == all(rule.result == "pass" for rule in result.rules)
    if not complete:
        assert result.recommendation == "refer"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("debt_consolidation", "debt_consolidation"),
        (" Debt Consolidation ", "debt_consolidation"),
        ("DEBT-CONSOLIDATION", "debt_consolidation"),
        ("\uff44\uff45\uff42\uff54\u3000consolidation", "debt_consolidation"),
        ("Credit cards", "credit_card"),
        ("auto", "car"),
        ("Élan vital", "élan_vital"),
    ],
)
def test_purposes_have_one_name(written: str, name: str) -> None:
    """DA-9. The policy of the normalised purpose."""
    assert normalise_purpose(written) == name
    assert normalise_purpose(name) == name


@pytest.mark.parametrize("written", ["", "  ", "--", "\x00", "x" * 101])
def test_a_purpose_that_names_nothing_is_refused(written: str) -> None:
    """DA-7. Refused with the field's name."""
    with pytest.raises(InputError) as caught:
        normalise_purpose(written)
    assert caught.value.field == "purpose"


@given(st.text(max_size=100))
def test_normalising_twice_changes_nothing(text: str) -> None:
    """DA-9. One name, whichever way it was reached."""
    try:
        once = normalise_purpose(text)
    except InputError:
        return
    if len(once) <= 100:
        assert normalise_purpose(once) == once
