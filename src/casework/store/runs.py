"""The rows of runs: accepted, read, listed, and closed from outside where their Temporal workflow is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.errors import BlankIdError, FatalError, IdempotencyConflictError
from casework.store import metrics, queries, reviews
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.incidents import Before, tell_cleared
from casework.store.paging import Cursor, Page, checked_limit, place
from casework.store.results import NOOP, WRITTEN, WriteResult
from casework.store.rows import (
    AttemptRow,
    ContextRow,
    DecisionRow,
    EventRow,
    LogRow,
    ReviewRow,
    RunMetricsRow,
    RunRow,
    StepRow,
    TurnMetricsRow,
)
from casework.store.runlock import lock_run
from casework.store.writers import close_open
from casework.values import Plain

_SQL = queries.load("runs")


@dataclass(frozen=True, slots=True)
class NewRun:
    """A request that was accepted. `actor` is who sent it, where that is another than `user`; `at` None: now.

    `task_queue` is the one it is to be started in; None: any. The parent is the run whose SUBWORKFLOW node starts it;
    `forked_from_*` the run and the step from which it is forked.
    """

    tenant: str
    run_id: UUID
    workflow_name: str
    workflow_version: int
    user: str
    request: Plain
    request_hash: str
    turn_limit: int = 5
    model: str | None = None
    policy_adoption: str = "pinned"
    actor: str | None = None
    at: datetime | None = None
    task_queue: str | None = None
    parent_run_id: UUID | None = None
    parent_path: str | None = None
    forked_from_run_id: UUID | None = None
    forked_from_path: str | None = None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with all that is its own but transcript, events and logs, which have pages."""

    run: RunRow
    context: list[ContextRow]
    steps: list[StepRow]
    attempts: list[AttemptRow]
    reviews: list[ReviewRow]
    decisions: list[DecisionRow]
    metrics: RunMetricsRow
    turns: list[TurnMetricsRow]


async def create_pending(conn: Connection, new: NewRun) -> tuple[RunRow, bool]:
    """Write the row PENDING, or find the one that the same request made before; whether it was created now.

    Raises:
        IdempotencyConflictError: the run exists and was asked for with another body.
        BlankIdError: tenant, user or workflow name is blank.
    """
    for field, text in (("tenant", new.tenant), ("user", new.user), ("workflow", new.workflow_name)):
        if not text.strip():
            raise BlankIdError(field, text)
    created = await queries.run(conn, _SQL["create_pending"], _new_params(new)) == 1
    run = await get(conn, new.tenant, new.run_id)
    if run is None:
        raise FatalError(f"Run {new.run_id} of tenant {new.tenant!r} was deleted while it was written. Start it again.")
    if run.request_hash != new.request_hash:
        raise IdempotencyConflictError(
            f"Run {new.run_id} was started before with another body under the same Idempotency-Key. "
            "Send the same body, or another key."
        )
    return run, created


def _new_params(new: NewRun) -> queries.Writing:
    return queries.Writing(
        tenant=new.tenant,
        run_id=new.run_id,
        temporal_workflow_id=str(new.run_id),
        workflow_name=new.workflow_name,
        workflow_version=new.workflow_version,
        user_id=new.user,
        actor=new.actor or new.user,
        request_hash=new.request_hash,
        policy_adoption=new.policy_adoption,
        model=new.model,
        turn_limit=new.turn_limit,
        task_queue=new.task_queue,
        parent_run_id=new.parent_run_id,
        parent_path=new.parent_path,
        forked_from_run_id=new.forked_from_run_id,
        forked_from_path=new.forked_from_path,
        at=new.at,
    ).json(request=new.request)


async def get(conn: Connection, tenant: str, run_id: UUID) -> RunRow | None:
    """A run by its id."""
    return await queries.one(conn, _SQL["get"], {"tenant": tenant, "run_id": run_id}, RunRow)


async def list_page(
    conn: Connection,
    tenant: str,
    user: str | None = None,
    status: str | None = None,
    workflow: str | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[RunRow]:
    """Runs, newest first, of a user, in a status, of a workflow, as far as these are asked for.

    Raises:
        InputError: the limit is out of range.
    """
    params = queries.Writing(tenant=tenant, user=user, status=status, workflow=workflow, limit=checked_limit(limit) + 1)
    rows = await queries.many(conn, _SQL["list_page"], {**params, **place(after)}, RunRow, prepare=False)
    more = Cursor(rows[limit - 1].created_at, rows[limit - 1].run_id) if len(rows) > limit else None
    return Page(rows[:limit], more)


async def detail(conn: Connection, tenant: str, run_id: UUID) -> RunDetail | None:
    """A run with context, steps, attempts, reviews, decisions and metrics."""
    run = await get(conn, tenant, run_id)
    if run is None:
        return None
    return RunDetail(
        run,
        await context(conn, tenant, run_id),
        await steps(conn, tenant, run_id),
        await attempts(conn, tenant, run_id),
        await reviews.of_run(conn, tenant, run_id),
        await reviews.decisions(conn, tenant, run_id),
        await metrics.of_run(conn, tenant, run_id),
        await metrics.of_turns(conn, tenant, run_id),
    )


async def context(conn: Connection, tenant: str, run_id: UUID) -> list[ContextRow]:
    """The latest value of each context key, by key."""
    return await queries.many(conn, _SQL["context"], {"tenant": tenant, "run_id": run_id}, ContextRow)


async def steps(conn: Connection, tenant: str, run_id: UUID) -> list[StepRow]:
    """The run's ledger, in the order of first starts."""
    return await queries.many(conn, _SQL["steps"], {"tenant": tenant, "run_id": run_id}, StepRow)


async def attempts(conn: Connection, tenant: str, run_id: UUID) -> list[AttemptRow]:
    """All attempts of the run's steps, in the order of their starts."""
    return await queries.many(conn, _SQL["attempts"], {"tenant": tenant, "run_id": run_id}, AttemptRow)


async def events(conn: Connection, tenant: str, run_id: UUID, after_seq: int = 0, limit: int = 200) -> list[EventRow]:
    """Events after `after_seq`, in order. A reader that goes on from the last `seq` it has seen misses none.

    Raises:
        InputError: the limit is out of range.
    """
    params = {"tenant": tenant, "run_id": run_id, "after_seq": after_seq, "limit": checked_limit(limit)}
    return await queries.many(conn, _SQL["events"], params, EventRow)


async def logs(conn: Connection, tenant: str, run_id: UUID, after: int = 0, limit: int = 200) -> list[LogRow]:
    """Log lines after the one with id `after`, in order."""
    params = {"tenant": tenant, "run_id": run_id, "after": after, "limit": checked_limit(limit)}
    return await queries.many(conn, _SQL["logs"], params, LogRow)


async def close_from_outside(
    conn: Connection, tenant: str, run_id: UUID, reason: str, at: datetime | None = None
) -> WriteResult:
    """End a run FAILED whose Temporal workflow is gone, as version + 1; a run that has ended stays as it is.

    An incident is taken down: it is a flag of open runs.

    Raises:
        ConflictError: there is no such run.
    """
    await lock_run(conn, tenant, run_id)
    params = queries.Writing(tenant=tenant, run_id=run_id, reason=reason, at=at)
    before = await queries.one(conn, _SQL["close_from_outside"], params, Before)
    if before is None:
        return NOOP
    await tell_cleared(conn, tenant, run_id, before, at)
    await close_open(conn, tenant, run_id, reason, at)
    await add_locked(conn, tenant, run_id, "", "run_closed_from_outside", {"reason": reason}, at)
    return WRITTEN
