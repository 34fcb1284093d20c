"""Whether a decision counts: judged by the run, when it arrives, on the run's own state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from casework.errors import InputError
from casework.review.wording import DecisionLike, check_decision


@dataclass(frozen=True, slots=True)
class OpenReview:
    """The question that may be answered now.

    `decisions` are the names to choose from, `refused` those refused now, each with the reason; `outcomes` is what an
    ending decision gives the run, `schemas` the JSON Schema of those decisions that have one.
    """

    review_id: str
    decisions: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The decision counts."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """The decision has no effect; `reason` is for its sender."""

    reason: str


Verdict = Accepted | Ignored


def judge(review: OpenReview | None, decision: DecisionLike, seen: Collection[str] = ()) -> Verdict:
    """Whether `decision` answers the open review.

    `review` is None where nothing is asked. `seen` are the ids of decisions judged before: the same id is one decision.
    """
    if decision.decision_id in seen:
        return Ignored(f"decision {decision.decision_id} has been received before; it counts once")
    if review is None:
        return Ignored("nothing is asked now: the run is not waiting for a decision")
    if decision.review_id != review.review_id:
        return Ignored(
            f"review {decision.review_id} is not the current one, which is {review.review_id}; "
            "look at it and decide anew"
        )
    return _judge_current(review, decision)


def _judge_current(review: OpenReview, decision: DecisionLike) -> Verdict:
    try:
        check_decision(decision)
    except InputError as error:
        return Ignored(str(error))
    if decision.command not in review.decisions:
        return Ignored(f"{decision.command!r:.100} is no decision of this review; choose {', '.join(review.decisions)}")
    if refused := review.refused.get(decision.command):
        return Ignored(refused)
    if problem := _schema_problem(review.schemas.get(decision.command), decision):
        return Ignored(problem)
    return Accepted()


def _schema_problem(schema: Mapping[str, Any] | None, decision: DecisionLike) -> str | None:
    if schema is None:
        return None
    from casework.graph.json_schemas import misfits  # noqa: PLC0415 - few reviews have a schema

    said = {"decision": decision.command, "reason": decision.reason, "reviewer": decision.reviewer}
    found = misfits(schema, said, limit=1)
    if not found:
        return None
    return f"{decision.command}: {found[0].field or 'the decision'} does not fit: {found[0].message:.300}"
