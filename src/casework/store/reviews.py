"""Reviews and the decisions on them: one accepted decision for each review, whoever writes."""

from __future__ import annotations

from uuid import UUID

from casework.errors import ConflictError, FatalError
from casework.projection import DecisionEntry, ReviewEntry
from casework.store import queries
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.paging import Cursor, Page, checked_limit, place
from casework.store.results import NOOP, STALE, WRITTEN, WriteResult
from casework.store.rows import DecisionRow, ReviewRow

_SQL = queries.load("reviews")


async def get(conn: Connection, tenant: str, review_id: UUID) -> ReviewRow | None:
    """A review by its id."""
    return await queries.one(conn, _SQL["get"], {"tenant": tenant, "review_id": review_id}, ReviewRow)


async def current(conn: Connection, tenant: str, run_id: UUID) -> ReviewRow | None:
    """The run's pending review, or None where it awaits nobody."""
    return await queries.one(conn, _SQL["current"], {"tenant": tenant, "run_id": run_id}, ReviewRow)


async def of_run(conn: Connection, tenant: str, run_id: UUID) -> list[ReviewRow]:
    """All reviews of a run, oldest first."""
    return await queries.many(conn, _SQL["of_run"], {"tenant": tenant, "run_id": run_id}, ReviewRow)


async def waiting(conn: Connection, tenant: str, after: Cursor | None = None, limit: int = 50) -> Page[ReviewRow]:
    """Pending reviews, oldest first.

    Raises:
        InputError: the limit is out of range.
    """
    params = {"tenant": tenant, "limit": checked_limit(limit) + 1, **place(after)}
    rows = await queries.many(conn, _SQL["waiting"], params, ReviewRow, prepare=False)
    more = Cursor(rows[limit - 1].created_at, rows[limit - 1].review_id) if len(rows) > limit else None
    return Page(rows[:limit], more)


async def decisions(conn: Connection, tenant: str, run_id: UUID) -> list[DecisionRow]:
    """All decisions that reached a run, oldest first, the ignored ones with their reason."""
    return await queries.many(conn, _SQL["decisions"], {"tenant": tenant, "run_id": run_id}, DecisionRow)


async def decision_winner(conn: Connection, tenant: str, review_id: UUID) -> DecisionRow | None:
    """The accepted decision of a review: who decided what and when."""
    return await queries.one(conn, _SQL["winner"], {"tenant": tenant, "review_id": review_id}, DecisionRow)


async def decision(conn: Connection, tenant: str, run_id: UUID, decision_id: str) -> DecisionRow | None:
    """A decision by its id, accepted or not."""
    params = queries.Writing(tenant=tenant, run_id=run_id, decision_id=decision_id)
    return await queries.one(conn, _SQL["decision"], params, DecisionRow)


async def write_review(conn: Connection, tenant: str, run_id: UUID, entry: ReviewEntry) -> WriteResult:
    """Ask a person. The caller holds the run's row lock; a run that has ended asks nobody: the review is born closed.

    Raises:
        ConflictError: the id names another question.
    """
    params = queries.Writing(
        tenant=tenant,
        review_id=_uuid(entry.review_id),
        run_id=run_id,
        path=entry.path,
        node=entry.node,
        turn=entry.turn,
        note=entry.note,
        at=entry.at,
    ).json(decisions=list(entry.decisions), refused=entry.refused, recommendation=entry.recommendation)
    if await queries.run(conn, _SQL["write"], params):
        return WRITTEN
    if await queries.value(conn, _SQL["same"], params):
        return NOOP
    raise ConflictError(f"Review {entry.review_id} of run {run_id} asks something else already. It stands.")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise FatalError(f"review_id={text!r} is no UUID. Derive it with ids.review_id.") from error


async def write_decision(conn: Connection, tenant: str, run_id: UUID, entry: DecisionEntry) -> WriteResult:
    """Keep an answer; an accepted one decides its review. The caller holds the run's row lock.

    An accepted decision whose review was closed meanwhile (the run was closed from outside) is kept as ignored: stale.

    Raises:
        ConflictError: the decision id came with another answer, or the review has an accepted decision already.
    """
    params = _decision_params(tenant, run_id, entry)
    if not entry.accepted:
        return await _keep(conn, params, entry)
    status = await queries.value(conn, _SQL["status"], params)
    if status is None:
        raise ConflictError(f"Run {run_id} has no review {entry.review_id}. Write the review before its decision.")
    if status == "closed":
        kept = await _keep(
            conn, {**params, **_ignored("the review was closed before this decision was written")}, entry
        )
        return await _tell_stale(conn, tenant, run_id, entry) if kept.rows else NOOP
    kept = await _keep(conn, params, entry)
    if kept.rows:
        await queries.run(conn, _SQL["decide"], params)
    return kept


def _decision_params(tenant: str, run_id: UUID, entry: DecisionEntry) -> queries.Writing:
    params = queries.Writing(
        tenant=tenant,
        run_id=run_id,
        decision_id=entry.decision_id,
        path=entry.path,
        command=entry.command,
        reason=entry.reason,
        reviewer=entry.reviewer,
        accepted=entry.accepted,
        ignored=None if entry.accepted else entry.ignored or "no reason was given",
        outcome=entry.outcome if entry.accepted else None,
        at=entry.at,
    )
    try:
        params["review_id"] = UUID(entry.review_id)
    except ValueError:
        if entry.accepted:
            raise ConflictError(
                f"review_id={entry.review_id!r} is no UUID; a decision on it cannot be accepted."
            ) from None
        params.update(queries.Writing(ignored=f"{params['ignored']} (review {entry.review_id[:100]!r} cannot be)"))
        params["review_id"] = None
    return params


def _ignored(why: str) -> dict[str, object]:
    return {"accepted": False, "ignored": why, "outcome": None}


async def _keep(conn: Connection, params: queries.Params, entry: DecisionEntry) -> WriteResult:
    """Insert the row; the same row again is a no-op."""
    if await queries.run(conn, _SQL["write_decision"], params):
        return WRITTEN
    if await queries.value(conn, _SQL["same_decision"], params):
        return NOOP
    raise ConflictError(
        f"Decision {entry.decision_id!r} is not written: its id came with another answer before, or review "
        f"{entry.review_id} has an accepted decision. The first one stands."
    )


async def _tell_stale(conn: Connection, tenant: str, run_id: UUID, entry: DecisionEntry) -> WriteResult:
    data = {"review_id": entry.review_id, "command": entry.command, "reviewer": entry.reviewer}
    await add_locked(conn, tenant, run_id, entry.path, f"decision_stale:{entry.decision_id}", data, entry.at)
    return STALE
