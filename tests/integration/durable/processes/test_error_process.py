"""The Error process from end to end: what failed is claimed, analysed, put to a person, and ended by the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import pytest

from casework.api import create_app
from casework.app import App
from casework.durable.answering import answer
from casework.errors import StateError
from casework.process import ERRORS, Answer, BusinessProcess, ErrorPolicy, Remedy
from casework.store import tokens
from casework.store.database import Database
from casework.store.processes import remedies
from casework.store.rows import RunRow
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.failing_app import GATES, MENDING, WORK

ALL = ErrorPolicy(resume=True, complete_by_hand=True)


@asynccontextmanager
async def desk_of(
    house: House, errors: BusinessProcess = ERRORS, policy: ErrorPolicy | None = None
) -> AsyncIterator[Desk]:
    """A house of the two processes, with a worker at work."""
    house.app = App(processes=[WORK, errors], errors=policy)
    async with house.worker():
        yield Desk(house)


async def failed(desk: Desk, **data: Any) -> UUID:
    """A Transaction that has failed in the normal flow."""
    uuid = await desk.add(data)
    await desk.walk("processing", 1)
    assert (await desk.get(uuid)).status == "HAS_ERROR"
    return uuid


@asynccontextmanager
async def api(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    """The API, as a reviewer asks it."""
    async with await Database.open(house.dsn, role=None, max_size=1) as admin, admin.transaction() as conn:
        token = await tokens.create(conn, "rita", TENANT, ["reviewer"])
    transport = httpx2.ASGITransport(create_app(house.settings, house.app, house.db, house.runs))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test", headers=headers) as client:
        yield client


async def decide(house: House, asked: RunRow, command: str, reason: str = "seen") -> dict[str, Any]:
    """A person finds the question in the inbox and answers it; gives the review as it stood."""
    async with api(house) as client:
        listed = (await client.get("/v1/reviews")).json()["items"]
        (review,) = [each for each in listed if each["run_id"] == str(asked.run_id)]
        told = await client.post(
            f"/v1/reviews/{review['review_id']}/decisions?wait=accepted&timeout=30",
            json={"command": command, "reason": reason},
        )
        assert told.status_code == 200, told.text
    return dict(review)


async def clone_of(desk: Desk, uuid: UUID) -> UUID | None:
    async with desk.house.db.transaction() as conn:
        return await remedies.clone_of(conn, TENANT, uuid)


async def test_a_person_aborts_what_has_failed(house: House) -> None:
    """BP-25, BP-27: the form says what failed, where, when and why; it is an ordinary Review, and abort ends it."""
    async with desk_of(house) as desk:
        uuid = await failed(desk)
        tray = await desk.tray(uuid, "errors")
        asked = await desk.waiting(uuid)
        assert (await desk.get(uuid)).status == "ERROR_IN_PROGRESS"
        review = await decide(house, asked, "abort")
        await tray.result()
        now = await desk.get(uuid)
        (error,) = await desk.errors(uuid)
        stages = [(stage.after, stage.process, stage.made_by) for stage in await desk.stages(uuid)]
    assert review["decisions"] == ["abort", "clone-INTAKE_COMPLETED"]
    form = review["recommendation"]
    assert (form["transaction"], form["status"]) == (str(uuid), "PROCESSING_IN_PROGRESS")
    told = form["error"]
    assert (told["type"], told["code"], told["root"]) == ("BUSINESS", "NO_AMOUNT", str(uuid))
    assert (told["process"], told["task"], told["attempt"]) == ("processing", "check", 1)
    assert told["time"].startswith(error.failed.isoformat()[:19])
    assert "the amount is missing" in told["short"]
    assert "Ask the sender." not in told["short"]
    assert "Ask the sender." in told["full"]
    assert (now.status, now.claim_id, now.straight_through) == ("ABORTED", None, False)
    assert stages[2:] == [
        ("HAS_ERROR", "processing", "error"),
        ("ERROR_IN_PROGRESS", "errors", "ErrorMonitor"),
        ("ABORTED", "errors", "ask-about-error"),
    ]


async def test_a_person_clones_what_has_failed(house: House) -> None:
    """BP-25, BP-27: the failed one is ABORTED for good, and a new one goes on in the status that was chosen."""
    async with desk_of(house) as desk:
        uuid = await failed(desk)
        tray = await desk.tray(uuid, "errors")
        await decide(house, await desk.waiting(uuid), "clone-INTAKE_COMPLETED")
        await tray.result()
        clone = await clone_of(desk, uuid)
        assert clone is not None
        assert (await desk.get(uuid)).status == "ABORTED"
        made = await desk.get(clone)
        assert (made.status, made.claim_id, made.process) == ("INTAKE_COMPLETED", None, None)


async def test_nobody_is_asked_about_a_warning(house: House) -> None:
    """BP-6: a Rule asks whether a person is needed; where none is, the Finalizer ends it."""
    async with desk_of(house) as desk:
        uuid = await failed(desk, severity="WARNING")
        await (await desk.tray(uuid, "errors")).result()
        assert (await desk.get(uuid)).status == "ABORTED"
        assert (await desk.stages(uuid))[-1].made_by == "finalizer"
        assert await desk.runs(uuid) == []


async def test_what_can_be_repaired_needs_no_person(house: House) -> None:
    """BP-25: an error task repairs by a clone, in its own database transaction; the clone goes through the line."""
    async with desk_of(house, MENDING) as desk:
        uuid = await failed(desk, guess=5)
        await (await desk.tray(uuid, "errors")).result()
        clone = await clone_of(desk, uuid)
        assert clone is not None
        assert ((await desk.get(uuid)).status, (await desk.get(uuid)).straight_through) == ("ABORTED", True)
        await desk.walk("processing", 1)
        made = await desk.get(clone)
        assert (made.status, made.data["amount"]) == ("PROCESSING_COMPLETED", 5)


async def test_a_remedy_that_cannot_be_is_an_error_of_its_own(house: House) -> None:
    """BP-25. A clone into no status that there is leaves no clone behind: the Transaction has one error more."""
    async with desk_of(house, MENDING) as desk:
        uuid = await failed(desk, guess=5, into="NOWHERE")
        await (await desk.tray(uuid, "errors")).result()
        now = await desk.get(uuid)
        assert (now.status, now.status_before_error, now.claim_id) == ("HAS_ERROR", "PROCESSING_IN_PROGRESS", None)
        assert [error.task for error in await desk.errors(uuid)] == ["check", "mend"]
        assert "NOWHERE" in (await desk.errors(uuid))[-1].full
        assert await clone_of(desk, uuid) is None


@pytest.mark.parametrize(("command", "status"), [("resume-hold", "PROCESSING_COMPLETED"), ("complete", "COMPLETED")])
async def test_the_further_answers_of_a_policy(house: House, command: str, status: str) -> None:
    """BP-26, BP-27: a policy that has them on offers to resume at each task, and to complete by hand."""
    async with desk_of(house, MENDING, ALL) as desk:
        uuid = await failed(desk)
        tray = await desk.tray(uuid, "errors")
        review = await decide(house, await desk.waiting(uuid), command)
        await tray.result()
        assert review["decisions"][-3:] == ["resume-check", "resume-hold", "complete"]
        if command == "resume-hold":
            assert (await desk.get(uuid)).skip_until == "hold"
            await desk.walk("processing", 1)
        now = await desk.get(uuid)
        assert (now.status, now.straight_through, now.skip_until) == (status, False, None)


async def test_the_error_process_works_while_the_tray_goes_on(house: House) -> None:
    """BP-24: what failed is dealt with while its tray is still on its way; then neither Task nor Finalizer touch it."""
    GATES["slow"] = asyncio.Event()
    async with desk_of(house) as desk:
        slow, bad = await desk.add({"amount": 1, "gate": "slow"}), await desk.add()
        tray = await desk.start(await desk.claimed("processing", 2))
        await desk.becomes(bad, "HAS_ERROR")
        errors = await desk.tray(bad, "errors")
        asked = await desk.waiting(bad)
        during = await desk.get(bad)
        assert (await desk.get(slow)).status == "PROCESSING_IN_PROGRESS"
        GATES["slow"].set()
        end = await tray.result()
        assert (end.transactions, end.left) == (2, 1)
        assert await desk.get(bad) == during
        assert (await desk.get(slow)).status == "PROCESSING_COMPLETED"
        await decide(house, asked, "abort")
        await errors.result()
        assert (await desk.get(bad)).status == "ABORTED"


async def test_an_answer_by_hand_takes_the_question_back(house: House) -> None:
    """BP-25. Answered directly while a person is asked: the question is closed, and its tray changes nothing more."""
    async with desk_of(house) as desk:
        uuid = await failed(desk)
        tray = await desk.tray(uuid, "errors")
        await desk.waiting(uuid)
        remedy = Remedy(Answer.CLONE, into="INTAKE_COMPLETED")
        made = await answer(house.db, house.app, house.runs, TENANT, uuid, remedy, "rita")
        assert made.clone is not None
        after = await desk.get(uuid)
        row = await desk.waiting(uuid, "CANCELLED")
        await tray.result()
        assert row.failure is not None
        assert row.failure.startswith(f"cancelled by rita: Transaction {uuid} was answered directly: clone")
        assert await desk.get(uuid) == after
        assert after.status == "ABORTED"
        assert len(await desk.errors(uuid)) == 1
        with pytest.raises(StateError, match="has no error"):
            await answer(house.db, house.app, house.runs, TENANT, uuid, remedy, "rita")
