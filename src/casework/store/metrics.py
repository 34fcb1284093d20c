"""Figures for the API, from the roll-up rows and from partial indexes; nothing here reads the whole history."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.paging import checked_limit
from casework.store.rows import RunMetricsRow, StepRow, TurnMetricsRow

_SQL = queries.load("metrics")
_NOTHING = RunMetricsRow(0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0)


@dataclass(frozen=True, slots=True)
class WorkflowMetrics:
    """The runs of one workflow since an instant. `mean_seconds`: from acceptance to the end, of those that ended."""

    workflow_name: str
    runs: int
    pending: int
    running: int
    awaiting_review: int
    completed: int
    failed: int
    cancelled: int
    incidents: int
    model_calls: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    cost: Decimal
    latency_ms: int
    mean_seconds: Decimal | None
    outcomes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetryMetrics:
    """Attempts of one tool or model that did not end well since an instant, and what became of their steps."""

    kind: str
    name: str
    failed: int
    lost: int
    late: int
    steps: int
    retrying: int
    given_up: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class _Outcome:
    workflow_name: str
    outcome: str
    runs: int


async def of_run(conn: Connection, tenant: str, run_id: UUID) -> RunMetricsRow:
    """What a run used so far; zeros where it used nothing yet."""
    found = await queries.one(conn, _SQL["run_metrics"], {"tenant": tenant, "run_id": run_id}, RunMetricsRow)
    return found or _NOTHING


async def of_turns(conn: Connection, tenant: str, run_id: UUID) -> list[TurnMetricsRow]:
    """The same for each turn, in order."""
    return await queries.many(conn, _SQL["turn_metrics"], {"tenant": tenant, "run_id": run_id}, TurnMetricsRow)


async def workflows(
    conn: Connection, tenant: str, since: datetime, workflow: str | None = None
) -> list[WorkflowMetrics]:
    """Figures of each workflow, over the runs created since an instant."""
    params = queries.Writing(tenant=tenant, since=since, workflow=workflow)
    rows = await queries.many(conn, _SQL["workflows"], params, WorkflowMetrics)
    by_name = {row.workflow_name: row for row in rows}
    for found in await queries.many(conn, _SQL["outcomes"], params, _Outcome):
        if found.workflow_name in by_name:
            by_name[found.workflow_name].outcomes[found.outcome] = found.runs
    return rows


async def retries(conn: Connection, tenant: str, since: datetime) -> list[RetryMetrics]:
    """Attempts that failed, were lost or came late since an instant, by tool and model."""
    return await queries.many(conn, _SQL["retries"], {"tenant": tenant, "since": since}, RetryMetrics)


async def in_flight(conn: Connection, tenant: str, limit: int = 200) -> list[StepRow]:
    """Steps that are STARTED, longest first; one with an `error` is between two attempts or in its next."""
    return await queries.many(conn, _SQL["in_flight"], {"tenant": tenant, "limit": checked_limit(limit)}, StepRow)
