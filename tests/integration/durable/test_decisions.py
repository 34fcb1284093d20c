"""A person's answer: judged by the run on its own state, counted once, kept for good."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import UUID, uuid4

import pytest
from temporalio.client import WorkflowFailureError

from casework.durable.contracts import CancelRequest, Decision
from casework.errors import StateError
from casework.store import reviews
from casework.store.rows import DecisionRow
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually


async def decisions_of(house: House, run_id: UUID) -> list[DecisionRow]:
    async with house.db.transaction() as conn:
        return await reviews.decisions(conn, TENANT, run_id)


async def asked(house: House) -> tuple[UUID, str]:
    """A run that waits for a person, and its review."""
    run_id = await house.start(APPLICATION)
    await house.reaches(run_id, "AWAITING_REVIEW")
    return run_id, str((await house.review(run_id)).review_id)


async def test_of_two_reviewers_at_once_exactly_one_wins(working: House) -> None:
    """DA-36. Ten decisions on one review: one is accepted, nine rows say ignored and why."""
    run_id, review = await asked(working)
    made = [Decision(review, f"d{i}", ("approve", "reject")[i % 2], "", f"r{i}") for i in range(10)]
    replies = await asyncio.gather(*(working.runs.decide_and_confirm(str(run_id), each, 20) for each in made))
    assert sorted(reply.accepted for reply in replies if reply) == [False] * 9 + [True]
    row = await working.reaches(run_id, "COMPLETED")
    rows = await decisions_of(working, run_id)
    winner = next(each for each in rows if each.accepted)
    assert row.outcome == winner.outcome
    assert len(rows) == 10
    assert all(each.ignored for each in rows if not each.accepted)


async def test_the_same_decision_twice_has_one_effect(working: House) -> None:
    """DA-35, DA-36. Signal and update with one decision_id: one row, one answer."""
    run_id, review = await asked(working)
    again = Decision(review, "the-one", "more_info", "why?", "rita")
    for _ in range(3):
        await working.runs.decide(str(run_id), again)
    reply = await working.runs.decide_and_confirm(str(run_id), again, 20)
    assert reply is not None
    assert reply.accepted
    row = await working.reaches(run_id, "AWAITING_REVIEW", turn=2)
    assert row.turn == 2
    assert [each.decision_id for each in await decisions_of(working, run_id)] == ["the-one"]


async def test_an_id_belongs_to_one_decision(working: House) -> None:
    """DA-36. The id of an accepted decision on the next review is refused, and does not pass it."""
    run_id, _ = await asked(working)
    await working.decide(run_id, "more_info", "Look again.", decision_id="mine")
    await working.reaches(run_id, "AWAITING_REVIEW", turn=2)
    second = str((await working.review(run_id)).review_id)
    reply = await working.runs.decide_and_confirm(str(run_id), Decision(second, "mine", "approve", "", "rita"), 20)
    assert reply is not None
    assert (reply.accepted, "was used for another decision" in (reply.reason or "")) == (False, True)
    assert (await working.run(run_id)).status == "AWAITING_REVIEW"


async def test_a_stale_decision_is_ignored_and_recorded(working: House) -> None:
    """DA-13, DA-35. An answer to an earlier review changes nothing, and its row says so."""
    run_id, first = await asked(working)
    await working.decide(run_id, "more_info", "Check again.")
    await working.reaches(run_id, "AWAITING_REVIEW", turn=2)
    reply = await working.runs.decide_and_confirm(str(run_id), Decision(first, "late", "approve", "", "rita"), 20)
    assert reply is not None
    assert not reply.accepted
    assert "is not the current one" in (reply.reason or "")
    assert (await working.run(run_id)).status == "AWAITING_REVIEW"
    late = next(each for each in await decisions_of(working, run_id) if each.decision_id == "late")
    assert not late.accepted
    assert "decision_ignored:late" in [event.kind for event in await working.events(run_id)]


async def test_nonsense_is_ignored_and_leaves_the_run_as_it_was(working: House) -> None:
    """DA-35. Unknown reviews and commands, missing reasons: each is ignored with its reason, none stops the run."""
    run_id, review = await asked(working)
    for bad in (
        Decision("no-such-review", "x1", "approve", "", "rita"),
        Decision(review, "x2", "launch", "", "rita"),
        Decision(review, "x3", "more_info", "", "rita"),
        Decision(review, "x4\x00", "approve", "a\x00b", ""),
    ):
        reply = await working.runs.decide_and_confirm(str(run_id), bad, 20)
        assert reply is not None
        assert not reply.accepted, bad
        assert reply.reason
    await working.decide(run_id, "approve")
    assert (await working.reaches(run_id, "COMPLETED")).outcome == "approved"


async def test_the_turn_limit_leaves_only_what_ends_the_run(working: House) -> None:
    """DA-14. At the limit the case goes to the reviewer with the reason, and more information is refused."""
    run_id = await working.start(APPLICATION, turn_limit=1)
    await working.reaches(run_id, "AWAITING_REVIEW")
    review = await working.review(run_id)
    assert "turn limit 1" in (review.note or "")
    assert list(review.refused) == ["more_info"]
    wish = Decision(str(review.review_id), "w", "more_info", "more", "rita")
    reply = await working.runs.decide_and_confirm(str(run_id), wish, 20)
    assert reply is not None
    assert (reply.accepted, "turn limit 1 is reached" in (reply.reason or "")) == (False, True)
    await working.decide(run_id, "reject")
    assert (await working.reaches(run_id, "COMPLETED")).outcome == "declined"


async def test_a_decision_before_its_review_is_open_does_not_count(house: House) -> None:
    """DA-35. A signal that arrives before the run has asked is ignored; the question still comes."""
    run_id = await house.start(APPLICATION)
    await house.runs.decide(str(run_id), Decision(str(uuid4()), "early", "approve", "", "rita"))
    async with house.worker():
        await house.reaches(run_id, "AWAITING_REVIEW")


@pytest.mark.parametrize("by", ["person", "engine"])
async def test_a_run_is_cancelled_while_it_waits(working: House, by: str) -> None:
    """DA-31. Cancelling ends the run CANCELLED, closes its review, and says who did it."""
    run_id, _ = await asked(working)
    if by == "person":
        await working.runs.cancel(str(run_id), CancelRequest("olga", "withdrawn"))
    else:
        await working.client.get_workflow_handle(str(run_id)).cancel()
    row = await working.reaches(run_id, "CANCELLED")
    assert row.outcome is None
    assert ("olga: withdrawn" if by == "person" else "the engine's own interface") in str(row.failure)

    async def closed() -> bool:
        async with working.db.transaction() as conn:
            return await reviews.current(conn, TENANT, run_id) is None

    await eventually(closed, "the review is closed")
    with contextlib.suppress(WorkflowFailureError):
        await working.client.get_workflow_handle(str(run_id)).result()  # its row is terminal a moment before it is
    with pytest.raises(StateError, match="has ended"):
        await working.runs.decide(str(run_id), Decision("r", "d", "approve", "", "rita"))
