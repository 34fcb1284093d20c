"""Reviews and decisions: asked once, answered once, whatever comes twice or late."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework import ids
from casework.errors import ConflictError, FatalError
from casework.projection import DecisionEntry
from casework.store import reviews, runs
from casework.store.database import Database
from casework.store.results import NOOP, STALE, WRITTEN
from casework.store.rows import DecisionRow
from tests.integration.store.cases import REVIEW_PATH, TENANT, apply, decision, fetch, new_run, review, running


async def winner(db: Database, run_id: UUID) -> DecisionRow | None:
    async with db.transaction() as conn:
        return await reviews.decision_winner(conn, TENANT, ids.review_id(run_id, REVIEW_PATH))


async def all_decisions(db: Database, run_id: UUID) -> dict[str, DecisionRow]:
    async with db.transaction() as conn:
        return {row.decision_id: row for row in await reviews.decisions(conn, TENANT, run_id)}


async def test_pending_review_is_the_current_one(db: Database, run_id: UUID) -> None:
    """DA-33. DA-34. The pending review is the run's current one, by its derived id, until it is answered."""
    assert await apply(db, run_id, running(1), review(run_id, refused={"more_info": "turn limit 5 reached"})) == [
        WRITTEN,
        WRITTEN,
    ]
    async with db.transaction() as conn:
        current = await reviews.current(conn, TENANT, run_id)
        assert current == await reviews.get(conn, TENANT, ids.review_id(run_id, REVIEW_PATH))
    assert current is not None
    assert (current.status, current.decisions) == ("pending", ["approve", "reject", "more_info"])
    assert current.refused == {"more_info": "turn limit 5 reached"}
    await apply(db, run_id, decision(run_id))
    async with db.transaction() as conn:
        assert await reviews.current(conn, TENANT, run_id) is None


async def test_review_asked_twice_is_one_row(db: Database, run_id: UUID) -> None:
    """DA-25. The same question again is a no-op, also after it was answered; another under its id is a conflict."""
    await apply(db, run_id, review(run_id))
    assert await apply(db, run_id, review(run_id)) == [NOOP]
    await apply(db, run_id, decision(run_id))
    assert await apply(db, run_id, review(run_id)) == [NOOP]
    with pytest.raises(ConflictError, match="asks something else"):
        await apply(db, run_id, review(run_id, recommendation={"action": "approve"}))


async def test_accepted_decision_decides_the_review(db: Database, run_id: UUID) -> None:
    """DA-36. The row says who, what, why and when; twice the same is one row."""
    await apply(db, run_id, review(run_id))
    assert await apply(db, run_id, decision(run_id)) == [WRITTEN]
    assert await apply(db, run_id, decision(run_id)) == [NOOP]
    won = await winner(db, run_id)
    assert won is not None
    assert (won.reviewer, won.command, won.reason) == ("grace", "approve", "income is steady")
    async with db.transaction() as conn:
        decided = await reviews.get(conn, TENANT, ids.review_id(run_id, REVIEW_PATH))
    assert decided is not None
    assert (decided.status, decided.ended_at) == ("decided", won.created_at)


async def test_ignored_decision_says_why(db: Database, run_id: UUID) -> None:
    """DA-35. DA-36. The loser's row is there, not accepted, with the reason; the winner stands."""
    lost = decision(run_id, decision_id="d-2", command="reject", accepted=False, ignored="d-1 was first", outcome=None)
    assert await apply(db, run_id, review(run_id), decision(run_id), lost) == [WRITTEN] * 3
    assert await apply(db, run_id, lost) == [NOOP]
    rows = await all_decisions(db, run_id)
    assert (rows["d-2"].accepted, rows["d-2"].ignored) == (False, "d-1 was first")
    assert rows["d-1"].accepted


async def test_second_accepted_decision_is_a_conflict(db: Database, run_id: UUID) -> None:
    """DA-36. The projection cannot be talked into a second winner, and a decision's id stands for one answer."""
    await apply(db, run_id, review(run_id), decision(run_id))
    with pytest.raises(ConflictError, match="The first one stands"):
        await apply(db, run_id, decision(run_id, decision_id="d-2", command="reject", outcome="declined"))
    with pytest.raises(ConflictError, match="The first one stands"):
        await apply(db, run_id, decision(run_id, reason="another reason"))


async def test_two_accepted_at_once_have_one_winner(db: Database, run_id: UUID) -> None:
    """DA-36. Two writers at the same moment, each sure of its own decision: exactly one row is accepted."""
    await apply(db, run_id, review(run_id))
    rivals = [decision(run_id, decision_id=f"d-{n}") for n in range(5)]
    outcomes = await asyncio.gather(*(apply(db, run_id, rival) for rival in rivals), return_exceptions=True)
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 4
    assert len(await fetch(db, "select 1 from agent_ops.agent_review_decisions where accepted")) == 1


@pytest.mark.parametrize("review_id", ["", "not-a-uuid", "x" * 10_000, "\x00"])
async def test_decision_on_a_review_that_cannot_be_is_kept_as_ignored(
    db: Database, run_id: UUID, review_id: str
) -> None:
    """DA-35. A stale or made-up review id breaks nothing: the decision is recorded, with what it named."""
    stray = decision(run_id, review_id=review_id, accepted=False, ignored="no such review", outcome=None)
    assert await apply(db, run_id, stray) == [WRITTEN]
    row = (await all_decisions(db, run_id))["d-1"]
    assert row.review_id is None
    assert row.ignored is not None
    assert row.ignored.startswith("no such review (review ")


async def test_accepted_decision_needs_its_review(db: Database, run_id: UUID) -> None:
    """DA-12. None is accepted for a review that is not there, or that is another run's."""
    other = uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(other))
    await apply(db, other, review(other))
    for wrong in (str(uuid4()), str(ids.review_id(other, REVIEW_PATH)), "not-a-uuid"):
        with pytest.raises(ConflictError):
            await apply(db, run_id, decision(run_id, review_id=wrong))


async def test_decision_after_the_run_was_closed_from_outside(db: Database, run_id: UUID) -> None:
    """DA-25. The workflow accepted what the sweep had closed: kept as ignored, recorded as stale, no outcome."""
    await apply(db, run_id, running(1, status="AWAITING_REVIEW"), review(run_id))
    async with db.transaction() as conn:
        await runs.close_from_outside(conn, TENANT, run_id, "workflow not found")
    end = running(2, status="COMPLETED", outcome="approved")
    assert await apply(db, run_id, decision(run_id), end) == [STALE, NOOP]
    assert (await apply(db, run_id, decision(run_id)))[0].outcome == "noop"
    row = (await all_decisions(db, run_id))["d-1"]
    assert (row.accepted, row.outcome) == (False, None)
    kinds = [row["kind"] for row in await fetch(db, "select kind from agent_ops.agent_events order by seq")]
    assert kinds == ["run_closed_from_outside", "decision_stale:d-1"]


async def test_review_of_an_ended_run_is_born_closed(db: Database, run_id: UUID) -> None:
    """DA-25. A question that arrives after the end asks nobody."""
    await apply(db, run_id, running(1, status="CANCELLED"), review(run_id))
    rows = await fetch(db, "select status from agent_ops.agent_reviews")
    assert rows == [{"status": "closed"}]


async def test_more_info_opens_another_review(db: Database, run_id: UUID) -> None:
    """DA-13. The next visit's review has an id of its own; both stay, in order."""
    asked = decision(run_id, command="more_info", outcome=None, reason="show payslips")
    await apply(db, run_id, review(run_id), asked, review(run_id, "decision.2", turn=2, at="2026-03-02T09:00:00+00:00"))
    async with db.transaction() as conn:
        found = await reviews.of_run(conn, TENANT, run_id)
        current = await reviews.current(conn, TENANT, run_id)
    assert [(row.path, row.status) for row in found] == [("decision.1", "decided"), ("decision.2", "pending")]
    assert current == found[1]


@pytest.mark.parametrize(
    ("change", "error"),
    [({"decision_id": ""}, ConflictError), ({"decision_id": "d" * 256}, ConflictError), ({"at": "soon"}, FatalError)],
)
async def test_odd_decisions_are_refused_in_words(
    db: Database, run_id: UUID, change: dict[str, Any], error: type[Exception]
) -> None:
    """An id that is blank or too long, a time that is none: an error that names the row, and nothing is written."""
    with pytest.raises(error, match=r"reviews\.write_decision"):
        await apply(db, run_id, review(run_id), decision(run_id, **change))
    assert await fetch(db, "select 1 from agent_ops.agent_reviews") == []


async def test_unholdable_text_in_a_decision_is_kept_readable(db: Database, run_id: UUID) -> None:
    """NUL and lone surrogates in a reason are replaced, counted on the row, and the repeat is still the same row."""
    odd: DecisionEntry = decision(run_id, reason="tab\x00le \ud800 fine")
    assert await apply(db, run_id, review(run_id), odd) == [WRITTEN, WRITTEN]
    assert await apply(db, run_id, odd) == [NOOP]
    row = (await all_decisions(db, run_id))["d-1"]
    assert (row.reason, row.cleaned) == ("tab\u2400le \ufffd fine", 2)
