"""Decisions: what is refused before anything is sent, and what the run says in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from temporalio.api.enums.v1 import EventType

from casework.app import App
from casework.durable.activities.services import Services
from casework.durable.worker import make_worker
from casework.models.catalogue import Models
from casework.projection import RunEntry
from tests.integration.api.conftest import Door, asked, at, decided, review_id_of, running

SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


async def eventually(look: Callable[[], Awaitable[Any]], what: str, deadline_s: float = 30) -> Any:
    until = asyncio.get_running_loop().time() + deadline_s
    while not (found := await look()):
        assert asyncio.get_running_loop().time() < until, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(0.05)
    return found


@pytest.fixture
async def working(door: Door) -> AsyncIterator[Door]:
    """The API with a worker at work."""
    async with make_worker(door.run_client._client, Services(door.db, App(), Models({}), door.settings), door.settings):
        yield door


async def waiting_run(door: Door, turn: int = 1) -> tuple[UUID, UUID]:
    """A run that waits for a person, and its review."""
    run_id = await door.start()

    async def look() -> Any:
        run = (await door.get(f"/v1/runs/{run_id}")).body
        at_rest = run["status"] == "AWAITING_REVIEW" and run["review"]["review_id"]
        return at_rest or None

    return run_id, UUID(await eventually(look, f"run {run_id} waits"))


async def decide(door: Door, review_id: UUID, command: str, reason: str = "seen", **options: Any) -> Any:
    body = {"command": command, "reason": reason}
    if "decision_id" in options:
        body["decision_id"] = options.pop("decision_id")
    return await door.post(f"/v1/reviews/{review_id}/decisions", body, **{"role": "reviewer", **options})


async def signals(door: Door, run_id: UUID) -> int:
    """How many signals the engine holds for a run."""
    handle = door.run_client._client.get_workflow_handle(str(run_id))
    return len([event async for event in handle.fetch_history_events() if event.event_type == SIGNALED])


async def test_202_means_received_and_the_run_acts_on_it(working: Door) -> None:
    """DA-35. The plain POST sends a signal."""
    run_id, review_id = await waiting_run(working)
    answer = await decide(working, review_id, "approve")
    assert (answer.status, answer.body["state"]) == (202, "received")

    async def ended() -> Any:
        run = (await working.get(f"/v1/runs/{run_id}")).body
        return run if run["status"] == "COMPLETED" else None

    run = await eventually(ended, "the run completes")
    assert run["outcome"] == "approved"
    (given,) = run["review"]["given"]
    assert (given["reviewer"], given["command"], given["accepted"]) == ("reviewer-1", "approve", True)
    assert given["decision_id"] == answer.body["decision_id"]


async def test_wait_accepted_is_200_and_the_same_again_is_the_same(working: Door) -> None:
    """DA-35, DA-36. The same `decision_id` twice: one row, one effect, the same answer."""
    _, review_id = await waiting_run(working)
    mine = str(uuid4())
    first = await decide(working, review_id, "approve", decision_id=mine, wait="accepted", timeout=20)
    assert (first.status, first.body["state"]) == (200, "accepted")

    async def stored() -> Any:
        return (await working.get(f"/v1/reviews/{review_id}")).body["given"] or None

    await eventually(stored, "the decision is a row")
    again = await decide(working, review_id, "approve", decision_id=mine, wait="accepted", timeout=20)
    assert (again.status, again.body) == (200, first.body)
    assert len(await stored()) == 1


async def test_of_two_decisions_at_once_exactly_one_wins(working: Door) -> None:
    """DA-36. Exactly one winner; the other gets 409 with who decided what."""
    _, review_id = await waiting_run(working)
    answers = await asyncio.gather(
        decide(working, review_id, "approve", name="rita", wait="accepted", timeout=20),
        decide(working, review_id, "reject", name="ralf", wait="accepted", timeout=20),
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    loser = next(answer for answer in answers if answer.status == 409)
    assert loser.body["type"] == "urn:casework:problem:stale-review"

    async def settled() -> Any:
        review = (await working.get(f"/v1/reviews/{review_id}")).body
        return review if review["status"] == "decided" else None

    review = await eventually(settled, "the review is decided")
    assert len([one for one in review["given"] if one["accepted"]]) == 1


async def test_more_info_asks_anew_and_the_old_page_is_stale(working: Door) -> None:
    """DA-13, DA-34. The next question has a new id; a decision on the old one is 409 and nothing is sent."""
    run_id, first = await waiting_run(working)
    assert (await decide(working, first, "more-info", "which Ada?", wait="accepted", timeout=20)).status == 200

    async def second() -> Any:
        run = (await working.get(f"/v1/runs/{run_id}")).body
        other = run["review"]["review_id"] != str(first) and run["status"] == "AWAITING_REVIEW"
        return run["review"]["review_id"] if other else None

    new = await eventually(second, "the run asks again")
    before = await signals(working, run_id)
    stale = await decide(working, first, "approve")
    assert stale.status == 409
    assert stale.body["current_review_id"] == new
    assert stale.body["run_status"] == "AWAITING_REVIEW"
    assert (stale.body["decision"]["command"], stale.body["decision"]["reviewer"]) == ("more_info", "reviewer-1")
    assert stale.body["decision"]["at"]
    assert await signals(working, run_id) == before, "nothing was sent"


async def test_without_a_worker_a_decision_is_received_and_waiting_for_it_ends_in_time(door: Door) -> None:
    """DA-35. It works with no worker up; 202 when the time is over."""
    run_id = await door.start()
    await door.project(run_id, running(), *asked(run_id))
    plain = await decide(door, review_id_of(run_id), "approve")
    assert (plain.status, plain.body["state"]) == (202, "received")
    patient = await decide(door, review_id_of(run_id), "approve", wait="accepted", timeout=0.3)
    assert (patient.status, patient.body["state"]) == (202, "received")


async def test_a_run_that_has_ended_takes_no_decision(door: Door) -> None:
    """DA-34. 409 with the current state, and who decided what and when."""
    run_id = await door.start()
    await door.project(
        run_id,
        running(),
        *asked(run_id),
        decided(run_id, "approve", outcome="approved"),
        RunEntry(3, "COMPLETED", turn=1, current_node="decision", loop_count=1, at=at(), outcome="approved"),
    )
    answer = await decide(door, review_id_of(run_id), "reject")
    assert answer.status == 409
    assert answer.body["run_status"] == "COMPLETED"
    assert answer.body["current_review_id"] is None
    assert "was decided approve by rita at" in answer.body["detail"]


async def test_what_the_review_does_not_offer_is_refused(door: Door) -> None:
    """DA-14. A refused command is refused with its reason; an unknown one names those there are."""
    run_id = await door.start()
    await door.project(run_id, running(), *asked(run_id, refused={"more_info": "the turn limit of 5 is reached"}))
    review_id = review_id_of(run_id)
    refused = await decide(door, review_id, "more_info")
    assert refused.status == 409
    assert "the turn limit of 5 is reached" in refused.body["detail"]
    unknown = await decide(door, review_id, "aprove")
    assert unknown.status == 422
    assert "approve, reject, more_info" in unknown.body["errors"][0]["message"]
    assert await signals(door, run_id) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": "x"}, "command"),
        ({"command": "approve", "reason": 5}, "reason"),
        ({"command": "approve", "reason": "x" * 4001}, "reason"),
        ({"command": "more_info", "reason": " "}, "reason"),
        ({"command": "approve", "decision_id": ""}, "decision_id"),
        ({"command": "approve", "reviewer": "boss"}, "reviewer"),
    ],
)
async def test_a_decision_that_does_not_hold_is_422(door: Door, body: dict[str, Any], field: str) -> None:
    run_id = await door.start()
    await door.project(run_id, running(), *asked(run_id))
    answer = await door.post(f"/v1/reviews/{review_id_of(run_id)}/decisions", body, role="reviewer")
    assert answer.status == 422
    assert answer.body["errors"][0]["field"] == field


async def test_a_get_decides_nothing(door: Door) -> None:
    """DA-37. A GET never decides, whatever its query says."""
    run_id = await door.start()
    await door.project(run_id, running(), *asked(run_id))
    answer = await door.get(f"/v1/reviews/{review_id_of(run_id)}", command="approve", decide="approve")
    assert (answer.status, [error["field"] for error in answer.body["errors"]]) == (422, ["command", "decide"])
    assert (await door.get(f"/v1/reviews/{review_id_of(run_id)}")).body["status"] == "pending"
    path = f"/v1/reviews/{review_id_of(run_id)}/decisions"
    assert (await door.get(path, command="approve")).status == 405
    assert await signals(door, run_id) == 0


async def test_cancelling_stops_a_run_and_a_run_that_ended_is_409(working: Door) -> None:
    run_id, review_id = await waiting_run(working)
    answer = await working.post(f"/v1/runs/{run_id}/cancel", {"reason": "withdrawn"}, role="operator")
    assert (answer.status, answer.body["state"]) == (202, "received")

    async def gone() -> Any:
        run = (await working.get(f"/v1/runs/{run_id}")).body
        return run if run["status"] == "CANCELLED" else None

    await eventually(gone, "the run is cancelled")
    assert (await working.post(f"/v1/runs/{run_id}/cancel", role="operator")).status == 202, "the same again"
    assert (await decide(working, review_id, "approve")).status == 409


async def test_what_has_ended_cannot_be_cancelled(door: Door) -> None:
    run_id = await door.start()
    failed = RunEntry(2, "FAILED", turn=1, current_node="decision", loop_count=1, at=at(), failure="no policy row")
    await door.project(run_id, running(), failed)
    answer = await door.post(f"/v1/runs/{run_id}/cancel", role="operator")
    assert answer.status == 409
    assert answer.body["run_status"] == "FAILED"
    assert await signals(door, run_id) == 0


@pytest.mark.parametrize("other", [{"command": "reject"}, {"name": "ralf"}])
async def test_the_id_of_another_decision_is_409_and_nothing_is_sent(door: Door, other: dict[str, str]) -> None:
    """DA-36. An id belongs to one decision; with another command or by another reviewer it is 409."""
    run_id = await door.start()
    first = decided(run_id, "approve", decision_id="d-1", accepted=False, ignored="too early", reviewer="reviewer-1")
    await door.project(run_id, running(), *asked(run_id), first)
    answer = await decide(
        door,
        review_id_of(run_id),
        other.get("command", "approve"),
        decision_id="d-1",
        **({"name": other["name"]} if "name" in other else {}),
    )
    assert answer.status == 409
    assert "is that of approve by reviewer-1" in answer.body["detail"]
    assert answer.body["known"]["command"] == "approve"
    assert answer.body["run_status"] == "AWAITING_REVIEW"
    assert await signals(door, run_id) == 0


async def test_an_id_of_an_earlier_review_is_409_on_the_next_one(door: Door) -> None:
    run_id = await door.start()
    first = decided(run_id, "more_info", decision_id="d-1", reviewer="reviewer-1")
    await door.project(run_id, running(), *asked(run_id), first, *asked(run_id, 2, 3))
    answer = await decide(door, review_id_of(run_id, 2), "more_info", decision_id="d-1")
    assert answer.status == 409
    assert str(review_id_of(run_id)) in answer.body["detail"]
    assert await signals(door, run_id) == 0


async def test_one_id_for_two_decisions_at_once_is_accepted_for_one(working: Door) -> None:
    """DA-36. The answer is about the decision that was sent."""
    _, review_id = await waiting_run(working)
    answers = await asyncio.gather(
        *(
            decide(working, review_id, command, decision_id="d-1", wait="accepted", timeout=20)
            for command in ("approve", "reject")
        )
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    accepted = next(answer for answer in answers if answer.status == 200)

    async def settled() -> Any:
        return (await working.get(f"/v1/reviews/{review_id}")).body["given"] or None

    given = [one for one in await eventually(settled, "the review is decided") if one["accepted"]]
    assert [one["command"] for one in given] == [accepted.body["command"]]
