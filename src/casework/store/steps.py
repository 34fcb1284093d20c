"""Steps as readers ask for them: those that are tried again, those that failed for good, and a run's own, in pages.

The ledger itself, which writes them, is `ledger`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from casework import ids
from casework.store import queries
from casework.store.database import Connection
from casework.store.paging import Cursor, Page, checked_limit, place
from casework.store.rows import AttemptRow, StepRow
from casework.values import Plain

_SQL = queries.load("steps")

State = Literal["started", "retrying", "failed"]
How = Literal["refused", "told", "given_up"]


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step in a list over runs. `error`: why it failed, or why its last attempt did (or was lost)."""

    step_id: UUID
    run_id: UUID
    path: str
    kind: str
    name: str
    node: str | None
    turn: int
    state: str
    attempt: int
    error: str | None
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    workflow_name: str
    user_id: str
    run_status: str
    how: How | None = None
    """Of a failed one: `refused` was never tried, `told` gave this answer itself, `given_up` had no attempt left."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which steps of a tenant. What is None does not matter; `name` is a tool's or a model's."""

    tenant: str
    state: State
    since: datetime
    """Failed: ended since then. The others are shown however old they are."""
    kind: str | None = None
    name: str | None = None
    workflow: str | None = None
    run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _EventId:
    event_id: UUID


async def page(conn: Connection, wanted: Wanted, after: Cursor | None = None, limit: int = 50) -> Page[StepLine]:
    """Steps of all runs: in flight or tried again, the longest first; failed for good, the newest first.

    Steps that were closed because their run ended, as by a cancellation, did not fail.

    Raises:
        InputError: the limit is out of range.
    """
    failed = wanted.state == "failed"
    params = queries.Writing(
        tenant=wanted.tenant,
        since=wanted.since if failed else None,
        kind=wanted.kind,
        name=wanted.name,
        workflow=wanted.workflow,
        run_id=wanted.run_id,
        again=wanted.state == "retrying",
        limit=checked_limit(limit) + 1,
    )
    query = _SQL["failed" if failed else "in_flight"]
    rows = await queries.many(conn, query, {**params, **place(after)}, StepLine, prepare=False)
    last = rows[limit - 1] if len(rows) > limit else None
    more = None if last is None else Cursor(last.ended_at or last.started_at, last.step_id)
    lines = rows[:limit]
    return Page(await _with_how(conn, wanted.tenant, lines) if failed else lines, more)


async def _with_how(conn: Connection, tenant: str, lines: Sequence[StepLine]) -> list[StepLine]:
    """Each with how it failed: whether its last attempt had reported a failure before the step was closed."""
    reports = {line.step_id: ids.event_id(line.run_id, line.path, f"attempt_failed:{line.attempt}") for line in lines}
    lost = {line.step_id: ids.event_id(line.run_id, line.path, f"attempt_lost:{line.attempt}") for line in lines}
    params = {"tenant": tenant, "event_ids": [*reports.values(), *lost.values()]}
    found = {row.event_id for row in await queries.many(conn, _SQL["told_of"], params, _EventId)}

    def how(line: StepLine) -> How:
        if not line.attempt:
            return "refused"
        return "given_up" if {reports[line.step_id], lost[line.step_id]} & found else "told"

    return [replace(line, how=how(line)) for line in lines]


async def page_of_run(
    conn: Connection, tenant: str, run_id: UUID, after: Cursor | None = None, limit: int = 200
) -> Page[StepRow]:
    """A run's ledger in the order of first starts.

    Raises:
        InputError: the limit is out of range.
    """
    params = {"tenant": tenant, "run_id": run_id, "limit": checked_limit(limit) + 1, **place(after)}
    rows = await queries.many(conn, _SQL["page_of_run"], params, StepRow, prepare=False)
    more = Cursor(rows[limit - 1].started_at, rows[limit - 1].step_id) if len(rows) > limit else None
    return Page(rows[:limit], more)


async def latest_of_run(conn: Connection, tenant: str, run_id: UUID, limit: int) -> tuple[list[StepRow], bool]:
    """The run's newest steps in the order of first starts, and whether there are older ones.

    Raises:
        InputError: the limit is out of range.
    """
    params = {"tenant": tenant, "run_id": run_id, "limit": checked_limit(limit) + 1}
    rows = await queries.many(conn, _SQL["latest_of_run"], params, StepRow)
    return rows[:limit][::-1], len(rows) > limit


async def attempts_of(conn: Connection, tenant: str, step_ids: Sequence[UUID]) -> list[AttemptRow]:
    """All attempts of these steps, in the order of their starts."""
    return await queries.many(conn, _SQL["attempts_of"], {"tenant": tenant, "step_ids": list(step_ids)}, AttemptRow)


async def evidence(conn: Connection, tenant: str, run_id: UUID) -> dict[str, Plain]:
    """The latest COMPLETED result of each tool of the run, by tool name."""
    found = await queries.dicts(conn, _SQL["evidence"], {"tenant": tenant, "run_id": run_id})
    return {row["name"]: row["result"] for row in found}
