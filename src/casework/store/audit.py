"""The audit trail: what is needed to reconstruct a run, from PostgreSQL alone, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from casework.store import messages, policy, runs
from casework.store.database import Connection
from casework.store.paging import LIMIT
from casework.store.rows import AttemptRow, DecisionRow, ReviewRow, StepRow
from casework.values import Plain, plain


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """A run as it was, each part plain data (instants as text, Decimals kept).

    `run` is its row. `policies`: which rows it used. `evidence`: its tool calls with arguments, result and every
    attempt; `model_calls` and `decision_steps` likewise. `reviews`: each with its recommendation, how long it waited
    (seconds, None while it waits) and all decisions on it. `stray_decisions` named no review of the run. `transcript`,
    `context`, `events` and `logs` in order.
    """

    run: Plain
    policies: list[Plain]
    evidence: list[Plain]
    model_calls: list[Plain]
    decision_steps: list[Plain]
    reviews: list[Plain]
    stray_decisions: list[Plain]
    context: list[Plain]
    transcript: list[Plain]
    events: list[Plain]
    logs: list[Plain]
    metrics: Plain

    def to_plain(self) -> dict[str, Any]:
        """All of it as one JSON object."""
        made: dict[str, Any] = plain(self)
        return made


async def trail(conn: Connection, tenant: str, run_id: UUID) -> AuditTrail | None:
    """The trail of a run, read in one snapshot; None where there is no such run. `conn` must be fresh in its block."""
    await conn.execute("set transaction isolation level repeatable read, read only")
    detail = await runs.detail(conn, tenant, run_id)
    if detail is None:
        return None
    steps = {kind: _steps(detail.steps, detail.attempts, kind) for kind in ("tool", "model", "decision")}
    known = {review.review_id for review in detail.reviews}
    return AuditTrail(
        run=plain(detail.run),
        policies=plain(await policy.uses(conn, tenant, run_id)),
        evidence=steps["tool"],
        model_calls=steps["model"],
        decision_steps=steps["decision"],
        reviews=[_review(review, detail.decisions) for review in detail.reviews],
        stray_decisions=plain([given for given in detail.decisions if given.review_id not in known]),
        context=plain(detail.context),
        transcript=await _all_messages(conn, tenant, run_id),
        events=await _all_events(conn, tenant, run_id),
        logs=await _all_logs(conn, tenant, run_id),
        metrics={"run": plain(detail.metrics), "turns": plain(detail.turns)},
    )


def _steps(steps: list[StepRow], attempts: list[AttemptRow], kind: str) -> list[Plain]:
    by_step: dict[UUID, list[AttemptRow]] = {}
    for attempt in attempts:
        by_step.setdefault(attempt.step_id, []).append(attempt)
    return [{**plain(step), "attempts": plain(by_step.get(step.step_id, []))} for step in steps if step.kind == kind]


def _review(review: ReviewRow, decisions: list[DecisionRow]) -> Plain:
    waited = None if review.ended_at is None else (review.ended_at - review.created_at).total_seconds()
    given = [decision for decision in decisions if decision.review_id == review.review_id]
    return {**plain(review), "waited_seconds": waited, "given": plain(given)}


async def _all_events(conn: Connection, tenant: str, run_id: UUID) -> list[Plain]:
    found: list[Plain] = []
    while page := await runs.events(conn, tenant, run_id, found[-1]["seq"] if found else 0, LIMIT):
        found.extend(plain(page))
    return found


async def _all_messages(conn: Connection, tenant: str, run_id: UUID) -> list[Plain]:
    found: list[Plain] = []
    while page := await messages.page(conn, tenant, run_id, found[-1]["position"] if found else 0, LIMIT):
        found.extend(plain(page))
    return found


async def _all_logs(conn: Connection, tenant: str, run_id: UUID) -> list[Plain]:
    found: list[Plain] = []
    while page := await runs.logs(conn, tenant, run_id, found[-1]["id"] if found else 0, LIMIT):
        found.extend(plain(page))
    return found
