"""Evidence held against limits: a pure function, the same on every machine and every replay.

Missing evidence is a fact, not a fault: its rules fail with the reason as `note`, and the recommendation is to refer,
even where another rule alone would decline, because a person shall see an incomplete file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from casework.policy.limits import PolicyLimits, PolicyReading, Source

Recommendation = Literal["approve", "refer", "decline"]
Number = int | Decimal
Sign = Literal[">=", "<=", "<"]


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule: `actual comparison threshold` holds (pass) or not (fail).

    `actual` is None where evidence is missing; the rule then fails and `note` says why.
    """

    rule: str
    comparison: Sign
    threshold: Number
    actual: Number | None
    result: Literal["pass", "fail"]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What policy says of one application, with everything needed to check it later."""

    recommendation: Recommendation
    rationale: str
    rules: tuple[RuleResult, ...]
    source: Source
    policy_name: str
    version: int
    purpose: str
    limits: PolicyLimits
    source_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule before its value is known: which actual it reads, and whether failing it declines."""

    name: str
    fact: str
    limit: Number
    sign: Sign
    hard: bool = False

    def holds(self, actual: Number) -> bool:
        if self.sign == ">=":
            return actual >= self.limit
        return actual <= self.limit if self.sign == "<=" else actual < self.limit


def evaluate(
    reading: PolicyReading,
    *,
    score: int | None,
    ratio: Decimal | None,
    delinquencies: int | None,
    missing: Mapping[str, str] | None = None,
) -> PolicyResult:
    """Hold a bureau score, a debt-to-income ratio in percent and delinquencies in two years against the limits.

    Pass None for what is not known; `missing` gives the reason by name (`score`, `ratio`, `delinquencies`).
    Raises nothing.
    """
    facts: dict[str, Number | None] = {"score": score, "ratio": _finite(ratio), "delinquencies": delinquencies}
    reasons = {
        name: (missing or {}).get(name, f"{name} is not known") for name, value in facts.items() if value is None
    }
    rules = _rules(reading.limits)
    results = tuple(_result(rule, facts[rule.fact], reasons) for rule in rules)
    recommendation, rationale = _conclude(rules, results, reasons)
    limits = reading.limits
    return PolicyResult(
        recommendation=recommendation,
        rationale=rationale,
        rules=results,
        source=reading.source,
        policy_name=limits.policy_name,
        version=limits.version,
        purpose=limits.purpose,
        limits=limits,
        source_reason=reading.reason,
    )


def _finite(ratio: Decimal | None) -> Decimal | None:
    """NaN and the infinities compare with nothing: a ratio that is no number is a ratio that is not known."""
    return ratio if ratio is not None and ratio.is_finite() else None


def _rules(limits: PolicyLimits) -> tuple[_Rule, ...]:
    return (
        _Rule("hard_decline_score", "score", limits.hard_decline_score, ">=", hard=True),
        _Rule("hard_decline_ratio", "ratio", limits.hard_decline_ratio, "<=", hard=True),
        _Rule("minimum_score", "score", limits.min_score, ">="),
        _Rule("automatic_approval_ratio", "ratio", limits.auto_approve_ratio, "<="),
        _Rule("material_delinquencies", "delinquencies", limits.material_delinquencies, "<"),
    )


def _result(rule: _Rule, actual: Number | None, reasons: Mapping[str, str]) -> RuleResult:
    passed = actual is not None and rule.holds(actual)
    return RuleResult(rule.name, rule.sign, rule.limit, actual, "pass" if passed else "fail", reasons.get(rule.fact))


def _conclude(
    rules: tuple[_Rule, ...], results: tuple[RuleResult, ...], reasons: Mapping[str, str]
) -> tuple[Recommendation, str]:
    failed = [
        (rule, result)
        for rule, result in zip(rules, results, strict=True)
        if result.result == "fail" and result.actual is not None
    ]
    told = "; ".join(
        f"{rule.name} wants {rule.fact} {rule.sign} {rule.limit}, found {result.actual}" for rule, result in failed
    )
    if reasons:
        lacking = "; ".join(dict.fromkeys(reasons.values()))
        return "refer", f"Evidence is missing: {lacking}." + (f" Also: {told}." if told else "")
    if any(rule.hard for rule, _ in failed):
        return "decline", f"A hard limit is broken: {told}."
    if failed:
        return "refer", f"Not every rule for automatic approval holds: {told}."
    return "approve", "Every rule for automatic approval holds."
