"""Figures for the API, from the roll-up rows and from partial indexes; nothing here reads the whole history.

A run that has ended is counted in its workflow's roll-up row (migration 0004 says how); an open one is found through
the partial indexes of open runs and their figures. Together they are every run that was accepted in the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.rows import RunMetricsRow, TurnMetricsRow

_SQL = queries.load("metrics")
By = Literal["hour", "day"]
_NOTHING = RunMetricsRow(0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0)


@dataclass(frozen=True, slots=True)
class WorkflowMetrics:
    """The runs of one workflow that were accepted in a window, or in one hour or day of it (from `begin` on).

    `mean_*` are of the runs that ended, `mean_seconds` from acceptance to the end; `mean_review_seconds` is how long a
    decided review had waited. None where there is nothing to divide by. Sums of tokens and milliseconds are whole
    numbers without a bound.
    """

    workflow_name: str
    begin: datetime | None
    runs: int
    pending: int
    running: int
    awaiting_review: int
    completed: int
    failed: int
    cancelled: int
    incidents: int
    reviews_asked: int
    reviews_decided: int
    reviews_closed: int
    model_calls: int
    tool_calls: int
    attempts_completed: int
    attempts_failed: int
    attempts_lost: int
    attempts_late: int
    tokens_in: int | Decimal
    tokens_out: int | Decimal
    cost: Decimal
    latency_ms: int | Decimal
    mean_seconds: Decimal | None
    mean_review_seconds: Decimal | None
    mean_tokens_in: Decimal | None
    mean_tokens_out: Decimal | None
    mean_cost: Decimal | None
    outcomes: dict[str, int]


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


async def of_run(conn: Connection, tenant: str, run_id: UUID) -> RunMetricsRow:
    """What a run used so far; zeros where it used nothing yet."""
    found = await queries.one(conn, _SQL["run_metrics"], {"tenant": tenant, "run_id": run_id}, RunMetricsRow)
    return found or _NOTHING


async def of_turns(conn: Connection, tenant: str, run_id: UUID) -> list[TurnMetricsRow]:
    """The same for each turn, in order."""
    return await queries.many(conn, _SQL["turn_metrics"], {"tenant": tenant, "run_id": run_id}, TurnMetricsRow)


def hour_of(moment: datetime) -> datetime:
    """The start of the hour (UTC) in which `moment` lies: roll-up rows know nothing finer."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


async def workflows(
    conn: Connection, tenant: str, since: datetime, workflow: str | None = None, by: By | None = None
) -> list[WorkflowMetrics]:
    """Figures of each workflow over the runs accepted from the hour of `since` on; with `by`, a row an hour or day."""
    params = queries.Writing(
        tenant=tenant, since=hour_of(since), workflow=workflow, by=by or "hour", series=by is not None
    )
    return await queries.many(conn, _SQL["workflows"], params, WorkflowMetrics, prepare=False)


async def retries(conn: Connection, tenant: str, since: datetime) -> list[RetryMetrics]:
    """Attempts that failed, were lost or came late since an instant, by tool and model."""
    params = {"tenant": tenant, "since": since}
    return await queries.many(conn, _SQL["retries"], params, RetryMetrics, prepare=False)
