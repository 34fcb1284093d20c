"""Rows as they are read: one frozen dataclass per table, its fields the columns of the query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from casework.values import Plain


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. `actor` is who sent the request, `user_id` whose run it is; `cost` in the currency of the prices.

    `task_queue` is the one it is started in; None in rows that are older than the column.
    """

    tenant: str
    run_id: UUID
    status: str
    version: int
    temporal_workflow_id: str
    workflow_name: str
    workflow_version: int
    user_id: str
    actor: str
    request: Plain
    request_hash: str
    policy_adoption: str
    model: str | None
    turn: int
    turn_limit: int
    current_node: str | None
    loop_count: int
    tokens_in: int
    tokens_out: int
    cost: Decimal
    recommendation: Plain
    outcome: str | None
    failure: str | None
    incident: Plain
    task_queue: str | None
    cleaned: int
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    parent_run_id: UUID | None = None
    parent_path: str | None = None
    forked_from_run_id: UUID | None = None
    forked_from_path: str | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """A numbered milestone; `at` is when it happened, `written_at` when the row was written."""

    run_id: UUID
    seq: int
    event_id: UUID
    path: str
    kind: str
    data: Plain
    cleaned: int
    at: datetime
    written_at: datetime


@dataclass(frozen=True, slots=True)
class StepRow:
    """A ledger row. STARTED with an `error` is a step whose last attempt failed and that is tried again.

    `taken_from`: the run in which it was done, where a fork took it over.
    """

    step_id: UUID
    run_id: UUID
    path: str
    kind: str
    name: str
    node: str | None
    turn: int
    tool_version: str | None
    arguments: Plain
    hash: str | None
    state: str
    attempt: int
    result: Plain
    error: str | None
    cleaned: int
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    taken_from: UUID | None = None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt of a step. `outcome` None: in flight. LATE keeps its result, which nobody uses."""

    step_id: UUID
    attempt: int
    outcome: str | None
    result: Plain
    error: str | None
    latency_ms: int | None
    tokens_in: int
    tokens_out: int
    cost: Decimal
    cleaned: int
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A row of the transcript, for readers; models get `agents.messages.Message`."""

    message_id: UUID
    id: int
    run_id: UUID
    path: str
    position: int
    agent: str
    role: str
    content: str
    requests: Plain
    call_id: str | None
    tool: str | None
    parts: Plain
    cleaned: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ContextRow:
    """The latest value of a context key."""

    key: str
    path: str
    version: int
    value: Plain
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A question to a person. `ended_at`: when it was decided or closed."""

    tenant: str
    review_id: UUID
    run_id: UUID
    path: str
    node: str
    turn: int
    status: str
    decisions: Plain
    refused: Plain
    recommendation: Plain
    note: str | None
    cleaned: int
    created_at: datetime
    ended_at: datetime | None
    workflow_name: str
    user_id: str


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """An answer, accepted or ignored with the reason. `review_id` None: it named no review that can be."""

    run_id: UUID
    decision_id: str
    review_id: UUID | None
    path: str
    command: str
    reason: str
    reviewer: str
    accepted: bool
    ignored: str | None
    outcome: str | None
    cleaned: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line for the reader of the run."""

    id: int
    path: str
    node: str
    level: str
    message: str
    cleaned: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RunMetricsRow:
    """What a run used so far. `attempts_*` count finished attempts; latency is their sum, in milliseconds."""

    model_calls: int
    tool_calls: int
    attempts_completed: int
    attempts_failed: int
    attempts_lost: int
    attempts_late: int
    tokens_in: int
    tokens_out: int
    cost: Decimal
    latency_ms: int


@dataclass(frozen=True, slots=True)
class TurnMetricsRow(RunMetricsRow):
    """The same for one turn."""

    turn: int
