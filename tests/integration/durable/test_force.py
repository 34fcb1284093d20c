"""What is too large, too deep, too much or malformed: each run ends or goes on, and says why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from casework.agents import ModelAnswer, Request, tool
from casework.durable import contracts
from casework.durable.contracts import CancelRequest, Decision
from casework.store import reviews
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import APPLICATION, TENANT, House


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ModelAnswer(text="x" * 1_500_000), "over the limit of 262,144"),
        (ModelAnswer(output=deep(99)), "nesting deeper than 64"),
        (ModelAnswer(requests=(Request("c", "look", deep(150)),)), "nesting deeper than"),
    ],
    ids=["large answer", "deep answer", "deep arguments"],
)
async def test_an_answer_that_cannot_travel_fails_its_node(
    house: House, tmp_path: Path, answer: ModelAnswer, told: str
) -> None:
    """DA-22. An oversized value is a clear error naming field, type and size, at once and without another attempt."""
    async with house.with_app(errand(tmp_path, [], lambda _: answer)) as busy:
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "FAILED")
        assert told in str(row.failure)
        [step] = await busy.steps(run_id)
        assert (step.state, step.attempt) == ("FAILED", 1)


async def test_long_errors_and_odd_names_are_told_in_short(house: House, tmp_path: Path) -> None:
    """DA-18. An error text of any length and a tool without a name are told to the model, and the run goes on."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        raise ConnectionError("e" * 720_000)

    script = asking([("look", {}), ("", {}), ("  ", {}), ("y" * 400_000, {})])
    async with house.with_app(errand(tmp_path, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "AWAITING_REVIEW")
        assert "there is no tool 'unnamed'" in row.recommendation
        assert len(row.recommendation) < 20_000


async def test_a_flood_of_decisions_loses_none(house: House) -> None:
    """DA-35, DA-36. One approval, then 160 long rejections, all while no worker is up: the approval is what counts."""
    async with house.worker():
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    review = str((await house.review(run_id)).review_id)
    await house.runs.decide(str(run_id), Decision(review, "first", "approve", "", "rita"))
    for number in range(160):
        made = Decision(review, f"flood-{number}", "reject", "\U0001f600" * 4000, "mallory")
        await house.runs.decide(str(run_id), made)
    async with house.worker():
        row = await house.reaches(run_id, "COMPLETED", deadline_s=60)
        assert row.outcome == "approved"
        async with house.db.transaction() as conn:
            made_ones = await reviews.decisions(conn, TENANT, run_id)
        assert [each.decision_id for each in made_ones if each.accepted] == ["first"]
        assert len(made_ones) == 161


@pytest.mark.parametrize("first", ["approve", "cancel"])
async def test_of_a_decision_and_a_cancel_the_first_counts(house: House, first: str) -> None:
    """DA-36. What was accepted is acted on, whatever comes after; what comes after a cancel is ignored."""
    async with house.worker():
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    review = str((await house.review(run_id)).review_id)
    for step in (first, "approve" if first == "cancel" else "cancel"):
        if step == "approve":
            await house.runs.decide(str(run_id), Decision(review, "d", "approve", "", "rita"))
        else:
            await house.runs.cancel(str(run_id), CancelRequest("olga", "withdrawn"))
    async with house.worker():
        row = await house.reaches(run_id, "COMPLETED" if first == "approve" else "CANCELLED")
    async with house.db.transaction() as conn:
        [made] = await reviews.decisions(conn, TENANT, run_id)
    assert made.accepted is (first == "approve")
    assert row.outcome == ("approved" if first == "approve" else None)
    kinds = [event.kind for event in await house.events(run_id)]
    assert ("agent.run_cancel_ignored" in kinds) is (first == "approve")


async def test_an_id_used_again_is_refused_whichever_way_it_comes(working: House) -> None:
    """DA-35. The id of an accepted decision under another command: rejected by the update, and told by an event."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    review = str((await working.review(run_id)).review_id)
    made = [Decision(review, "same", command, "", "rita") for command in ("approve", "reject") * 4]
    replies = await asyncio.gather(*(working.runs.decide_and_confirm(str(run_id), each, 20) for each in made))
    row = await working.reaches(run_id, "COMPLETED")
    accepted = {each.command for each, reply in zip(made, replies, strict=True) if reply and reply.accepted}
    assert accepted == {"approve" if row.outcome == "approved" else "reject"}
    assert any(event.kind.startswith("decision_ignored:same:") for event in await working.events(run_id))


async def test_messages_that_are_none_leave_the_run_as_it_is(working: House) -> None:
    """DA-19. Whatever is sent to a run from outside, its workflow task does not fail."""
    run_id = await working.start(APPLICATION)
    await working.reaches(run_id, "AWAITING_REVIEW")
    handle = working.client.get_workflow_handle(str(run_id))
    bodies: list[Any] = [None, 7, "text", [], {"review_id": 1}, {"review_id": None, "decision_id": 2, "command": []}]
    for body in bodies:
        await handle.signal(contracts.DECIDE_SIGNAL, body)
        await handle.signal(contracts.CANCEL_SIGNAL, body)
    with pytest.raises(Exception, match=r"(?i)update"):
        await handle.execute_update(contracts.DECIDE_UPDATE, None)
    await working.decide(run_id, "approve")
    assert (await working.reaches(run_id, "COMPLETED")).outcome == "approved"
    history = await handle.fetch_history()
    assert not any(event.HasField("workflow_task_failed_event_attributes") for event in history.events)
