"""Ready-made rows and short forms that the tests of the store share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from casework import ids
from casework.projection import DecisionEntry, EventEntry, ReviewEntry, RunEntry, to_plain
from casework.projection.entries import Entry
from casework.store import ledger, projection
from casework.store.database import Database
from casework.store.ledger import Claimed, StepClaim, StepCommit
from casework.store.results import WriteResult
from casework.store.runs import NewRun
from casework.values import content_hash, instant

TENANT = "default"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
PATH = "underwrite.1/exchange.1/credit_check.1"
REVIEW_PATH = "decision.1"


def at(minutes: float) -> str:
    """An instant some minutes after the start of the case."""
    return instant(START + timedelta(minutes=minutes))


def new_run(run_id: UUID, **changes: Any) -> NewRun:
    request = {"applicant_id": "A-1", "amount": 12_000, "purpose": "car"}
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "run_id": run_id,
        "workflow_name": "loan-underwriting",
        "workflow_version": 1,
        "user": "ada",
        "request": request,
        "request_hash": content_hash(request),
    }
    return NewRun(**{**fields, **changes})


def running(version: int, **changes: Any) -> RunEntry:
    fields: dict[str, Any] = {
        "version": version,
        "status": "RUNNING",
        "turn": 1,
        "current_node": "underwrite",
        "loop_count": 1,
        "at": at(version),
    }
    return RunEntry(**{**fields, **changes})


def review(run_id: UUID, path: str = REVIEW_PATH, **changes: Any) -> ReviewEntry:
    fields: dict[str, Any] = {
        "path": path,
        "review_id": str(ids.review_id(run_id, path)),
        "node": "decision",
        "turn": 1,
        "decisions": ("approve", "reject", "more_info"),
        "at": at(10),
        "recommendation": {"action": "refer"},
    }
    return ReviewEntry(**{**fields, **changes})


def decision(run_id: UUID, path: str = REVIEW_PATH, **changes: Any) -> DecisionEntry:
    fields: dict[str, Any] = {
        "path": path,
        "review_id": str(ids.review_id(run_id, path)),
        "decision_id": "d-1",
        "command": "approve",
        "reason": "income is steady",
        "reviewer": "grace",
        "at": at(20),
        "accepted": True,
        "outcome": "approved",
    }
    return DecisionEntry(**{**fields, **changes})


def event(kind: str, path: str = PATH, data: Any = None) -> EventEntry:
    return EventEntry(path, kind, at(1), data)


def tool_claim(run_id: UUID, path: str = PATH, **changes: Any) -> StepClaim:
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "run_id": run_id,
        "path": path,
        "kind": "tool",
        "name": "credit_check",
        "tool_version": "1",
        "arguments": {"applicant_id": "A-1"},
        "turn": 1,
        "node": "underwrite",
    }
    return StepClaim(**{**fields, **changes})


def done(run_id: UUID, attempt: int, path: str = PATH, **changes: Any) -> StepCommit:
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "run_id": run_id,
        "path": path,
        "attempt": attempt,
        "state": "COMPLETED",
        "result": {"score": 665},
        "error": None,
        "latency_ms": 40,
    }
    return StepCommit(**{**fields, **changes})


async def apply(db: Database, run_id: UUID, *entries: Entry) -> list[WriteResult]:
    """Apply entries in one transaction, as an activity does."""
    async with db.transaction() as conn:
        return await projection.apply(conn, TENANT, run_id, [to_plain(entry) for entry in entries])


async def claim(db: Database, step: StepClaim) -> Claimed:
    async with db.transaction() as conn:
        return await ledger.claim(conn, step)


async def commit(db: Database, end: StepCommit) -> WriteResult:
    async with db.transaction() as conn:
        return await ledger.commit(conn, end)


async def fetch(db: Database, statement: str, *params: Any) -> list[dict[str, Any]]:
    """Rows of any query, as dicts: what a person with a console would see."""
    async with db.transaction() as conn, conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), params)
        return await cursor.fetchall()


async def execute(db: Database, statement: str, *params: Any) -> int:
    """Any statement, in a transaction of its own."""
    async with db.transaction() as conn:
        return (await conn.execute(statement.encode(), params)).rowcount
