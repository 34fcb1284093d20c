"""Transactions over HTTP: put in, listed, looked at, and answered for where they failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from casework.app import App
from casework.cli.process_view import print_process
from casework.cli.transaction_view import print_transaction
from casework.store.processes import transactions, waiting_parents
from casework.store.processes.task_steps import TaskStep
from tests.integration.api.conftest import Door
from tests.integration.api.lines import APP, BEGAN, WORK, door_to, put, put_failed


@pytest.fixture
async def works(door: Door) -> AsyncIterator[Door]:
    """The API of an application with processes, and no worker."""
    async with door_to(door, APP) as made:
        yield made


async def pages(door: Door, **query: Any) -> list[list[str]]:
    """The ids of each page, following the cursors."""
    found: list[list[str]] = []
    cursor = None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        body = (await door.get("/v1/transactions", **query, **more)).body
        found.append([item["uuid"] for item in body["items"]])
        cursor = body["next_cursor"]
        if cursor is None:
            return found


async def test_a_transaction_is_put_in_once_for_its_natural_key(works: Door) -> None:
    """201 with its place; the same key again is the same one, and changes nothing of it."""
    sent = {"data": {"amount": 5.10}, "natural_key": "mail-1", "priority": 3, "due_time": "2026-02-01T08:00:00+01:00"}
    first = await works.post("/v1/transactions", sent, role="operator", name="olga")
    assert (first.status, first.headers["location"]) == (201, f"/v1/transactions/{first.body['uuid']}")
    assert (first.body["status"], first.body["priority"]) == ("INTAKE_IN_PROGRESS", 3)
    assert str(first.body["data"]["amount"]) == "5.1"
    assert first.body["due_time"].startswith("2026-02-01T07:00:00")
    again = await works.post("/v1/transactions", {"natural_key": "mail-1", "data": {"amount": 9}}, role="operator")
    assert (again.status, again.body) == (200, first.body)
    other = await works.post("/v1/transactions", {"natural_key": "mail-1"}, role="operator", tenant="other")
    assert other.status == 201
    nameless = [(await works.post("/v1/transactions", {}, role="operator")).body["uuid"] for _ in range(2)]
    assert len(set(nameless)) == 2
    detail = (await works.get(f"/v1/transactions/{first.body['uuid']}")).body
    assert [(each["before"], each["after"], each["by"]) for each in detail["stages"]] == [
        (None, "INTAKE_IN_PROGRESS", "olga")
    ]
    assert (await works.post("/v1/transactions", {}, role="reviewer")).status == 403
    assert await pages(works, natural_key="mail-1") == [[first.body["uuid"]]]
    assert await pages(works, natural_key="mail") == [[]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "COMPLETED"}, "status"),
        ({"data": []}, "data"),
        ({"data": {"a": "x" * 300_000}}, "data"),
        ({"priority": "high"}, "priority"),
        ({"due_time": "2026-02-01"}, "due_time"),
        ({"natural_key": ""}, "natural_key"),
        ({"key": "m"}, "key"),
    ],
)
async def test_what_cannot_begin_is_422(works: Door, body: dict[str, Any], field: str) -> None:
    """With the field; nothing is written."""
    answer = await works.post("/v1/transactions", body, role="operator")
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)
    assert await pages(works) == [[]]


async def test_transactions_are_listed_newest_first_and_filtered(works: Door) -> None:
    """Pages without gap or repeat; by status, process, parent, tray and a part of the natural key."""
    waiting = [await put(works, number, natural_key=f"Mail-{number}") for number in range(5)]
    failed = await put_failed(works)
    child = await put(works, 9, parent_uuid=waiting[0].uuid, claim_id=(claim := uuid4()), process="work")
    ids = [str(each.uuid) for each in waiting]
    found = await pages(works, status="INTAKE_COMPLETED", limit=2)
    assert [len(page) for page in found] == [2, 2, 2]
    assert [uuid for page in found for uuid in page] == [str(child.uuid), *reversed(ids)]
    assert await pages(works, key="mail-3") == [[ids[3]]]
    assert await pages(works, process="work", status="HAS_ERROR") == [[str(failed)]]
    assert await pages(works, parent=str(waiting[0].uuid)) == [[str(child.uuid)]]
    assert await pages(works, claim=str(claim)) == [[str(child.uuid)]]
    assert await pages(works, tenant="other") == [[]]
    assert (await works.get("/v1/transactions", parent="seven")).status == 422


async def test_a_transaction_shows_what_belongs_to_it(works: Door) -> None:
    """Stages, errors, children, and what can be done about it; its figures once it is COMPLETED."""
    failed = await put_failed(works, {"a": 1})
    child = await put(works, 3, parent_uuid=failed)
    body = (await works.get(f"/v1/transactions/{failed}", role="viewer")).body
    assert (body["status"], body["status_before_error"]) == ("HAS_ERROR", "PROCESSING_IN_PROGRESS")
    assert [each["after"] for each in body["stages"]] == ["PROCESSING_IN_PROGRESS", "HAS_ERROR"]
    assert [(each["code"], each["type"], each["task"]) for each in body["errors"]] == [
        ("NO_AMOUNT", "BUSINESS", "price")
    ]
    assert [each["uuid"] for each in body["children"]] == [str(child.uuid)]
    assert (body["answers"], body["steps"], body["runs"]) == (["abort", "clone", "resume"], [], [])
    assert (await works.get(f"/v1/transactions/{child.uuid}")).body["answers"] == []
    assert (await works.get(f"/v1/transactions/{uuid4()}")).status == 404
    assert (await works.get(f"/v1/transactions/{failed}", tenant="other")).status == 404


async def test_a_parent_that_waits_says_where_since_when_and_for_which(
    works: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    """BP-8. Of its children those that have not come to the join; the process counts who waits. A tray that is gone
    waits no more."""
    claim = uuid4()
    parent = await put(works, claim_id=claim, process="work", status="PROCESSING_IN_PROGRESS")
    here, away = [await put(works, number, parent_uuid=parent.uuid) for number in (1, 2)]
    step = TaskStep(
        tenant=parent.tenant,
        claim_id=claim,
        transaction=parent.uuid,
        status=parent.status,
        process="work",
        task="join",
        path="join.1",
        kind="join",
    )
    async with works.db.transaction() as conn:
        await waiting_parents.note(conn, step, BEGAN)
        await transactions.arrive(conn, here, "join")
    detail = (await works.get(f"/v1/transactions/{parent.uuid}")).body
    since = detail["waits"]["since"]
    assert since.startswith("2026-03-01T00:00:00")
    assert detail["waits"] == {"process": "work", "task": "join", "since": since, "missing": [str(away.uuid)]}
    process = (await works.get("/v1/processes/work")).body
    assert process["waits"] == {"transactions": 1, "since": since}
    print_transaction(detail)
    print_process(process)
    told = capsys.readouterr().out
    assert f"It waits at work/join since 2026-03-01 00:00:00Z; not there yet: {away.uuid}" in told
    assert "waiting     1 for children in other trays, since 2026-03-01 00:00:00Z" in told
    async with works.db.transaction() as conn:
        await transactions.release(conn, parent.tenant, claim)
    assert (await works.get(f"/v1/transactions/{parent.uuid}")).body["waits"] is None
    assert (await works.get("/v1/processes/work")).body["waits"] == {"transactions": 0, "since": None}


async def test_a_failed_one_is_cloned_and_the_link_is_told(works: Door) -> None:
    """BP-25. ABORTED, and a new one in its place with the data of both; a second answer is refused."""
    failed = await put_failed(works, {"a": 1})
    sent = {"into": "INTAKE_COMPLETED", "data": {"amount": 4}}
    made = await works.post(f"/v1/transactions/{failed}/clone", sent, role="operator", name="olga")
    assert (made.status, made.body["transaction"]["status"]) == (200, "ABORTED")
    clone = made.body["clone"]
    assert (clone["cloned_from"], clone["data"], clone["status"]) == (
        str(failed),
        {"a": 1, "amount": 4},
        "INTAKE_COMPLETED",
    )
    body = (await works.get(f"/v1/transactions/{failed}")).body
    assert [each["uuid"] for each in body["clones"]] == [clone["uuid"]]
    assert (body["answers"], body["stages"][-1]["by"], body["straight_through"]) == ([], "olga", False)
    assert await pages(works, clone_of=str(failed)) == [[clone["uuid"]]]
    for verb, again in (("clone", sent), ("abort", None), ("retry", {"at": "price"})):
        answer = await works.post(f"/v1/transactions/{failed}/{verb}", again, role="operator")
        assert (answer.status, "has no error" in answer.body["detail"]) == (409, True)


async def test_a_failed_one_is_aborted_or_goes_on_at_a_task(works: Door) -> None:
    """BP-26. `retry` where the policy says so: back to where its process takes it from, past the tasks before."""
    aborted, retried = await put_failed(works), await put_failed(works)
    made = await works.post(f"/v1/transactions/{aborted}/abort", role="operator")
    assert (made.body["transaction"]["status"], made.body["clone"]) == ("ABORTED", None)
    made = await works.post(f"/v1/transactions/{retried}/retry", {"at": "pack", "data": {"b": 2}}, role="operator")
    now = made.body["transaction"]
    assert (now["status"], now["skip_until"], now["data"], now["claim_id"]) == (
        "INTAKE_COMPLETED",
        "pack",
        {"b": 2},
        None,
    )


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("clone", {"into": "COMPLETED"}, 422),
        ("clone", {}, 422),
        ("clone", {"into": "INTAKE_COMPLETED", "at": "pack"}, 422),
        ("retry", {"at": "pick"}, 422),
        ("retry", {}, 422),
    ],
)
async def test_an_answer_that_does_not_hold_is_refused(
    works: Door, verb: str, body: dict[str, Any], status: int
) -> None:
    """And the Transaction stays as it was."""
    failed = await put_failed(works)
    assert (await works.post(f"/v1/transactions/{failed}/{verb}", body, role="operator")).status == status
    assert (await works.post(f"/v1/transactions/{failed}/abort", role="reviewer")).status == 403
    assert (await works.get(f"/v1/transactions/{failed}")).body["status"] == "HAS_ERROR"


async def test_an_answer_that_is_not_on_offer_is_409(door: Door) -> None:
    """The policy that no one has written offers abort and clone."""
    async with door_to(door, App(processes=[WORK])) as works:
        failed = await put_failed(works)
        answer = await works.post(f"/v1/transactions/{failed}/retry", {"at": "pack"}, role="operator")
        assert (answer.status, "there are abort, clone" in answer.body["detail"]) == (409, True)
