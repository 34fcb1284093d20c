"""From the store's rows to the answers of `shapes`: names as users know them, nothing of the inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from casework.api.doing import Doing
from casework.api.shapes import RetryPolicy
from casework.durable.contracts import Fork
from casework.durable.policies import POLICIES, OperationPolicy
from casework.store.forks import ForkRow
from casework.store.rows import AttemptRow, DecisionRow, EventRow, MessageRow, ReviewRow, RunRow, StepRow
from casework.store.runs import RunDetail
from casework.store.steps import StepLine
from casework.values import Plain, instant, plain

POLICY_TOOL = "policy_lookup"
"""The tool whose result is the policy's evaluation of the evidence."""

OPEN_REVIEWS = 100
"""Most of a run's open reviews in one answer."""


def when(value: datetime | None) -> str | None:
    """The instant of a column; None for null."""
    return None if value is None else instant(value)


def run(row: RunRow) -> dict[str, Plain]:
    """`shapes.Run`."""
    return {
        "run_id": str(row.run_id),
        "workflow": row.workflow_name,
        "workflow_version": row.workflow_version,
        "status": row.status,
        "version": row.version,
        "user": row.user_id,
        "actor": row.actor,
        "input": row.request,
        "model": row.model,
        "turn": row.turn,
        "turn_limit": row.turn_limit,
        "current_node": row.current_node,
        "loop_count": row.loop_count,
        "recommendation": row.recommendation,
        "outcome": row.outcome,
        "failure": row.failure,
        "incident": row.incident,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "forked_from": _origin(row),
        "created_at": when(row.created_at),
        "updated_at": when(row.updated_at),
        "ended_at": when(row.ended_at),
    }


def _origin(row: RunRow) -> Plain:
    if row.forked_from_run_id is None:
        return None
    return {"run_id": str(row.forked_from_run_id), "path": row.forked_from_path}


def forked(row: RunRow, fork: Fork) -> dict[str, Plain]:
    """`shapes.ForkedRun`."""
    return {**run(row), "visit": fork.visit, "kept_steps": fork.kept, "anew": fork.anew or None}


def detail(
    found: RunDetail, results: dict[str, Plain], now: Doing, *, earlier: bool, forks: Sequence[ForkRow]
) -> dict[str, Plain]:
    """`shapes.RunDetail`. `results`: the newest result of each tool; `earlier`: whether older steps are left out."""
    newest = found.reviews[-1] if found.reviews else None
    open_ones = [row for row in found.reviews if row.status == "pending"]
    return {
        **run(found.run),
        "doing": now.plain(),
        "evidence": results,
        "context": {row.key: row.value for row in found.context},
        "steps": steps(found.steps, found.attempts),
        "earlier_steps": earlier,
        "policy": policy(found.run, results),
        "review": _with_decisions(newest, found.decisions) if newest else None,
        "open_reviews": [_with_decisions(row, found.decisions) for row in open_ones[:OPEN_REVIEWS]],
        "metrics": metrics(found.metrics),
        "turns": [metrics(row) for row in found.turns],
        "forks": [_fork(row) for row in forks],
        "retry_policies": [_retries(policy) for policy in POLICIES.values()],
    }


def _with_decisions(row: ReviewRow, decisions: Sequence[DecisionRow]) -> dict[str, Plain]:
    return {**review(row), "given": given(row.review_id, decisions)}


def _fork(row: ForkRow) -> dict[str, Plain]:
    return {
        "run_id": str(row.run_id),
        "path": row.path,
        "status": row.status,
        "created_at": when(row.created_at),
    }


def _retries(policy: OperationPolicy) -> dict[str, Plain]:
    """How an operation is tried; what else a policy has is the run's own business."""
    return {name: value for name, value in metrics(policy).items() if name in RetryPolicy.model_fields}


def metrics(row: object) -> dict[str, Plain]:
    """A row of figures, by its own names."""
    made: dict[str, Plain] = plain(row, "metrics")
    return made


def steps(rows: Sequence[StepRow], attempts: Iterable[AttemptRow]) -> list[dict[str, Plain]]:
    """`shapes.Step`, each with its attempts in order."""
    tries: dict[UUID, list[AttemptRow]] = {}
    for one in attempts:
        tries.setdefault(one.step_id, []).append(one)
    return [_step(row, sorted(tries.get(row.step_id, ()), key=lambda one: one.attempt)) for row in rows]


def _step(row: StepRow, tries: Sequence[AttemptRow]) -> dict[str, Plain]:
    return {
        "step_id": str(row.step_id),
        "path": row.path,
        "kind": row.kind,
        "name": row.name,
        "node": row.node,
        "turn": row.turn,
        "state": row.state,
        "attempt": row.attempt,
        "arguments": row.arguments,
        "result": row.result,
        "error": row.error,
        "latency_ms": tries[-1].latency_ms if tries else None,
        "started_at": when(row.started_at),
        "ended_at": when(row.ended_at),
        "taken_from": None if row.taken_from is None else str(row.taken_from),
        "attempts": [_attempt(one) for one in tries],
    }


def _attempt(row: AttemptRow) -> dict[str, Plain]:
    return {
        "attempt": row.attempt,
        "outcome": row.outcome,
        "error": row.error,
        "latency_ms": row.latency_ms,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "started_at": when(row.started_at),
        "ended_at": when(row.ended_at),
    }


def step_line(row: StepLine, due: datetime | None) -> dict[str, Plain]:
    """`shapes.StepLine`; `due`: when it is tried again."""
    policy = POLICIES.get(row.kind)
    return {
        "step_id": str(row.step_id),
        "run_id": str(row.run_id),
        "path": row.path,
        "kind": row.kind,
        "name": row.name,
        "node": row.node,
        "turn": row.turn,
        "state": row.state,
        "attempt": row.attempt,
        "attempts": policy.attempts if policy else None,
        "error": row.error,
        "how": row.how,
        "started_at": when(row.started_at),
        "ended_at": when(row.ended_at),
        "next_attempt_at": when(due),
        "workflow": row.workflow_name,
        "user": row.user_id,
        "run_status": row.run_status,
    }


def policy(row: RunRow, results: Mapping[str, Plain]) -> dict[str, Plain]:
    """`shapes.PolicyView`: what policy says, beside what the model says."""
    return {"evaluation": results.get(POLICY_TOOL), "model": row.recommendation}


def review(row: ReviewRow) -> dict[str, Plain]:
    """`shapes.Review`."""
    return {
        "review_id": str(row.review_id),
        "run_id": str(row.run_id),
        "path": row.path,
        "node": row.node,
        "turn": row.turn,
        "status": row.status,
        "decisions": row.decisions,
        "refused": row.refused or {},
        "recommendation": row.recommendation,
        "note": row.note,
        "created_at": when(row.created_at),
        "ended_at": when(row.ended_at),
    }


def decision(row: DecisionRow) -> dict[str, Plain]:
    """`shapes.DecisionGiven`."""
    return {
        "decision_id": row.decision_id,
        "command": row.command,
        "reason": row.reason,
        "reviewer": row.reviewer,
        "accepted": row.accepted,
        "ignored": row.ignored,
        "outcome": row.outcome,
        "at": when(row.created_at),
    }


def given(review_id: UUID, rows: Iterable[DecisionRow]) -> list[dict[str, Plain]]:
    """The decisions of one review out of its run's."""
    return [decision(row) for row in rows if row.review_id == review_id]


def event(row: EventRow) -> dict[str, Plain]:
    """`shapes.Event`."""
    return {
        "seq": row.seq,
        "event_id": str(row.event_id),
        "path": row.path,
        "kind": row.kind,
        "data": row.data,
        "at": when(row.at),
    }


def message(row: MessageRow) -> dict[str, Plain]:
    """`shapes.MessageShape`: without the provider's own parts."""
    return {
        "position": row.position,
        "agent": row.agent,
        "role": row.role,
        "content": row.content,
        "requests": row.requests or [],
        "call_id": row.call_id,
        "tool": row.tool,
    }
