"""A long run goes on as a new history: nothing is lost, nothing is done or told twice, and no path comes again."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from temporalio.client import WorkflowHistory

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.durable.contracts import CancelRequest, Decision, DecisionReply
from casework.durable.workflows import rolling
from casework.errors import StateError
from casework.store import messages, reviews
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.long_case import long_app
from tests.integration.durable.parts import early, parts_of
from tests.integration.durable.sweeping import Backup, sweep_now
from tests.replay.replaying import replayer

BOUND = 40
"""Events of a part: some three exchanges."""


async def told_once(house: House, run_id: UUID) -> Counter[str]:
    """How often each kind of event was told, once it is sure that none is there twice for one path."""
    events = await house.events(run_id)
    per_path = Counter((event.path, event.kind) for event in events)
    assert max(per_path.values()) == 1
    return Counter(event.kind.split(":")[0] for event in events)


async def all_replay(histories: list[WorkflowHistory]) -> None:
    for history in histories:
        await replayer().replay_workflow(history)


@pytest.mark.parametrize("cached", [True, False])
async def test_an_agents_visit_goes_on_between_two_exchanges(house: House, tmp_path: Path, cached: bool) -> None:
    """DA-20, TT-27. A visit that was at rest goes on under its own path with its own ordinals, in many histories."""
    async with early(house, BOUND, cached=cached).with_app(long_app(tmp_path, 13)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "approve")
        row = await busy.reaches(run_id, "COMPLETED")
        histories = await parts_of(busy.client, run_id)
    assert (row.outcome, row.recommendation) == ("approved", "12 records read")
    assert len(histories) >= 4
    assert all(len(history.events) < BOUND + 20 for history in histories)
    tools = [step.path for step in await house.steps(run_id) if step.name == "record"]
    assert sorted(tools) == sorted(f"act.1/exchange.{number}/record.1" for number in range(1, 13))
    told = await told_once(house, run_id)
    assert told["agent.run_rolled_over"] == len(histories) - 1
    assert (told["agent.run_started"], told["agent.node_started"], told["agent.node_completed"]) == (1, 2, 2)
    async with house.db.transaction() as conn:
        transcript = await messages.transcript(conn, TENANT, run_id, 26, "runner")
    assert [message.position for message in transcript] == list(range(1, 27))
    await all_replay(histories)


async def test_a_loop_goes_on_between_two_nodes(house: House, tmp_path: Path) -> None:
    """DA-20, DA-14. Turns, visits and their limit count over all parts."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        return "seen"

    async with early(house, 25).with_app(errand(tmp_path, [look], asking([("look", {})]))) as busy:
        run_id = await busy.start({}, "errand", turn_limit=6)
        for turn in range(1, 6):
            await busy.reaches(run_id, "AWAITING_REVIEW", turn=turn)
            await busy.decide(run_id, "more_info", f"And {turn}?", decision_id=f"d{turn}")
        await busy.reaches(run_id, "AWAITING_REVIEW", turn=6)
        review = await busy.review(run_id)
        assert list(review.refused) == ["more_info"]
        early_id = await busy.runs.decide_and_confirm(
            str(run_id), Decision(str(review.review_id), "d1", "approve", "", "rita"), 20
        )
        assert early_id is not None
        assert "was used for another decision" in (early_id.reason or "")  # its answer was given in an earlier part
        await busy.decide(run_id, "reject")
        row = await busy.reaches(run_id, "COMPLETED")
        histories = await parts_of(busy.client, run_id)
    assert (row.outcome, row.turn, row.loop_count) == ("declined", 6, 12)
    assert len(histories) >= 3
    visits = {event.path for event in await house.events(run_id) if event.kind == "agent.node_started"}
    assert visits == {f"{node}.{visit}" for node in ("act", "decision") for visit in range(1, 7)}
    await told_once(house, run_id)
    await all_replay(histories)


@pytest.mark.parametrize("end", ["approve", "person", "engine"])
async def test_a_question_is_answered_in_a_later_part(house: House, tmp_path: Path, end: str) -> None:
    """DA-20, DA-31. Commands fill the history of a run that waits; it is answered, or cancelled, in a later part."""

    def script(_: ModelRequest) -> ModelAnswer:
        return ModelAnswer(text="done")

    async with early(house, BOUND).with_app(errand(tmp_path, [], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        review = str((await busy.review(run_id)).review_id)
        for number in range(20):
            reply = await busy.runs.decide_and_confirm(
                str(run_id), Decision(review, f"bad{number}", "launch", "", "rita"), 20
            )
            assert reply is not None
            assert not reply.accepted
        handle = busy.client.get_workflow_handle(str(run_id))
        if end == "approve":
            await busy.decide(run_id, "approve")
        elif end == "person":
            await busy.runs.cancel(str(run_id), CancelRequest("olga", "withdrawn"))
        else:
            await handle.cancel()
        await busy.reaches(run_id, "COMPLETED" if end == "approve" else "CANCELLED")
        histories = await parts_of(busy.client, run_id)
    assert len(histories) >= 2
    async with house.db.transaction() as conn:
        assert len(await reviews.decisions(conn, TENANT, run_id)) == 20 + (end == "approve")
    assert (await told_once(house, run_id))["agent.review_pending"] == 1
    await all_replay(histories)


async def test_what_is_too_much_to_carry_stays_in_one_history(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-20. A run whose state does not fit into one input goes on where it is, says so once, and ends well."""
    monkeypatch.setattr(rolling, "CARRIED_BYTES", 100)
    async with early(house, BOUND).with_app(long_app(tmp_path, 10)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
        assert len(await parts_of(busy.client, run_id)) == 1


async def test_a_run_in_a_later_part_can_be_restored(house: House, tmp_path: Path) -> None:
    """DA-20, DA-8. A restored database does not know the run: its row is made again, as of when the run began."""
    app = long_app(tmp_path, 8)
    async with early(house, BOUND).with_app(app) as busy:
        backup = await Backup.of(busy)
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "AWAITING_REVIEW")
        assert len(await parts_of(busy.client, run_id)) > 1
        began = (await busy.client.get_workflow_handle(str(run_id)).describe()).start_time
    async with backup.restored() as earlier, earlier.with_app(app) as now:

        async def found() -> bool:
            return (await sweep_now(now)).restored == 1

        await eventually(found, "the run without a row is found")
        again = await now.reaches(run_id, "AWAITING_REVIEW")
        assert again.recommendation == row.recommendation == "7 records read"
        assert again.created_at < began
        await now.decide(run_id, "approve")
        assert (await now.reaches(run_id, "COMPLETED")).outcome == "approved"


@pytest.mark.timeout(600)
async def test_a_burst_of_commands_around_roll_overs_is_answered(house: House, tmp_path: Path) -> None:
    """DA-20. 1,000 signals and updates while a run rolls over again and again: each is recorded once, each update is
    answered, and of ten approvals at once one is accepted."""
    slow = asyncio.Event()

    @tool(effects=False)
    async def record(number: int) -> dict[str, object]:
        """Wait a moment, so that commands meet the run at every place."""
        await asyncio.wait_for(slow.wait(), 30) if number < 2 else None
        return {"number": number}

    def script(request: ModelRequest) -> ModelAnswer:
        read = sum(message.role == "tool" for message in request.messages)
        if read < 40:
            return ModelAnswer(requests=(Request(f"c{read}", "record", {"number": read}),))
        return ModelAnswer(text=f"{read} read")

    room = asyncio.Semaphore(8)  # the engine takes ten updates of a run at one time

    async with early(house, BOUND).with_app(errand(tmp_path, [record], script, exchanges=60)) as busy:
        run_id = await busy.start({}, "errand")

        async def send(number: int, review: str) -> None:
            made = Decision(review, f"n{number}", "approve", f"number {number}", "rita")
            async with room:
                if number % 2:
                    await busy.runs.decide(str(run_id), made)
                    return
                reply = await busy.runs.decide_and_confirm(str(run_id), made, 60)
                assert reply is not None
                assert not reply.accepted

        async def burst(numbers: range, review: str) -> None:
            await asyncio.gather(*(send(number, review) for number in numbers))

        first = asyncio.create_task(burst(range(500), str(uuid4())))
        slow.set()
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await first
        await burst(range(500, 1000), str(uuid4()))
        review = str((await busy.review(run_id)).review_id)
        last = [Decision(review, f"last{number}", "approve", "", f"r{number}") for number in range(10)]
        approvals = (busy.runs.decide_and_confirm(str(run_id), each, 60) for each in last)
        replies = await asyncio.gather(*approvals, return_exceptions=True)
        row = await busy.reaches(run_id, "COMPLETED")
        histories = await parts_of(busy.client, run_id)
    answers = [reply for reply in replies if isinstance(reply, DecisionReply)]
    assert not [
        repr(reply) for reply in replies if not isinstance(reply, (DecisionReply, StateError))
    ]  # the latest find it ended
    assert sum(answer.accepted for answer in answers) == 1
    assert (row.outcome, row.recommendation) == ("approved", "40 read")
    told = [event.kind for event in await house.events(run_id) if event.kind.startswith("decision_ignored:")]
    ignored = {f"decision_ignored:n{number}" for number in range(1000)}
    assert ignored <= set(told)
    assert len(told) == len(set(told)) == 1000 + len(answers) - 1
    await told_once(house, run_id)
    assert len(histories) > 10
    await all_replay(histories)
