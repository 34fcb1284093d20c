"""A decision on its way from a person to a run.

What the tables say is checked first, so that a person who is late learns it at once and nothing is sent. The run
judges again on its own state, because the tables may lag; whatever it says in the end is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from casework.api import render
from casework.api.access import Caller
from casework.api.requests import Decide
from casework.api.services import Services
from casework.durable.contracts import Decision
from casework.errors import FieldsError, NotFoundError, StaleReviewError, StateError
from casework.ids import decision_id
from casework.review import check_decision, command_name
from casework.store import reviews, runs
from casework.store.rows import DecisionRow, ReviewRow, RunRow
from casework.values import instant


@dataclass(frozen=True)
class Standing:
    """What the tables say about a review: its run, the review that can be decided, and the decision that won, if any.

    `current` is the review itself while it is open, else the newest open one of its run.
    """

    review: ReviewRow
    run: RunRow
    current: UUID | None
    winner: DecisionRow | None

    def facts(self) -> dict[str, Any]:
        """The members of a 409 that tell the present state."""
        return {
            "run_id": str(self.run.run_id),
            "run_status": self.run.status,
            "review_id": str(self.review.review_id),
            "current_review_id": str(self.current) if self.current else None,
            "decision": render.decision(self.winner) if self.winner else None,
        }


async def standing(services: Services, tenant: str, review_id: UUID) -> Standing:
    """What the tables say about a review now.

    Raises:
        NotFoundError: there is no such review.
    """
    async with services.db.transaction() as conn:
        review = await reviews.get(conn, tenant, review_id)
        if review is None:
            raise NotFoundError(f"There is no review {review_id}. The list of reviews has those that wait.")
        run = await runs.get(conn, tenant, review.run_id)
        current = await reviews.current(conn, tenant, review.run_id)
        winner = await reviews.decision_winner(conn, tenant, review_id)
    assert run is not None, "a review goes with its run"
    if review.status == "pending":  # branches ask side by side: each open question is as current as the others
        current = review
    waits = current is not None and run.status in {"RUNNING", "AWAITING_REVIEW"} and current.status == "pending"
    return Standing(review, run, current.review_id if current and waits else None, winner)


async def decide(
    services: Services, caller: Caller, review_id: UUID, request: Decide, wait_s: float | None
) -> tuple[Literal["received", "accepted"], Decision, UUID]:
    """Send a decision to its run; with `wait_s` wait so long for the run's word. Also gives the run.

    Raises:
        NotFoundError: there is no such review.
        InputError: the review knows no such command.
        StaleReviewError: the review cannot be decided (any more); nothing was sent, or the run rejected it.
    """
    now = await standing(services, caller.tenant, review_id)
    decision = _decision(caller, now.review, request)
    run_id = now.run.run_id
    await _check_id(services, now, decision, "Nothing was sent.")
    if now.winner is not None and _is_same(now.winner, decision):
        return "accepted", decision, run_id
    _check(now, decision)
    if wait_s is None:
        await services.runs.decide(str(run_id), decision)
        return "received", decision, run_id
    reply = await services.runs.decide_and_confirm(str(run_id), decision, wait_s)
    if reply is None:
        return "received", decision, run_id
    if not reply.accepted:
        raise await _rejected(services, caller.tenant, review_id, reply.reason)
    # Two at once under one id may both have passed the check above; the engine's word is then about the first.
    await _check_id(services, now, decision, "That one was accepted, this one was not.")
    return "accepted", decision, run_id


def _decision(caller: Caller, review: ReviewRow, request: Decide) -> Decision:
    command = command_name(request.command, review.decisions)
    given = request.decision_id or str(decision_id(review.review_id, caller.name, command, request.reason))
    return Decision(str(review.review_id), given, command, request.reason, caller.name)


async def _check_id(services: Services, now: Standing, decision: Decision, told: str) -> None:
    """That the decision's id is not another decision's.

    Raises:
        StateError: the run has a decision of that id on another review, with another command or by another reviewer.
    """
    tenant, run_id = now.run.tenant, now.run.run_id
    async with services.db.transaction() as conn:
        known = await reviews.decision(conn, tenant, run_id, decision.decision_id)
    if known is not None and not _is_same(known, decision):
        raise StateError(
            f"decision_id {decision.decision_id!r} is that of {known.command} by {known.reviewer} on review "
            f"{known.review_id}. {told} Send another decision_id, or none.",
            details={**now.facts(), "known": {**render.decision(known), "review_id": str(known.review_id)}},
        )


def _is_same(known: DecisionRow, decision: Decision) -> bool:
    """Whether this is the known decision sent again: then the answer is the same again, and nothing is sent."""
    mine = (decision.review_id, decision.decision_id, decision.command, decision.reviewer)
    return mine == (str(known.review_id), known.decision_id, known.command, known.reviewer)


def _check(now: Standing, decision: Decision) -> None:
    if now.current != now.review.review_id:
        raise StaleReviewError(f"Nothing was sent: {_why(now)} Look at the run anew.", details=now.facts())
    known = list(now.review.decisions)
    if decision.command not in known:
        message = f"{decision.command!r} is none of this review's commands: {', '.join(known)}"
        raise FieldsError(f"{message}.", [{"field": "command", "message": message}])
    check_decision(decision)
    refused = (now.review.refused or {}).get(decision.command)
    if refused:
        raise StateError(
            f"{decision.command} is not possible: {refused}. Nothing was sent. "
            f"Possible: {', '.join(name for name in known if name not in now.review.refused)}.",
            details=now.facts(),
        )


def _why(now: Standing) -> str:
    if now.winner is not None:
        who, at = now.winner.reviewer, instant(now.winner.created_at)
        return (
            f"review {now.review.review_id} was decided {now.winner.command} by {who} at {at}; run is {now.run.status}."
        )
    if now.current is not None:
        return f"review {now.review.review_id} is not the current one of its run, {now.current} is."
    return f"run {now.run.run_id} is {now.run.status} and awaits no review."


async def _rejected(services: Services, tenant: str, review_id: UUID, reason: str | None) -> StaleReviewError:
    now = await standing(services, tenant, review_id)
    told = (reason or "the run gave no reason").rstrip(".")
    return StaleReviewError(f"The run rejected the decision: {told}.", details={**now.facts(), "reason": reason})
