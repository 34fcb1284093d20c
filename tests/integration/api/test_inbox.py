"""An inbox over HTTP: what is sent is kept once, and taken in by the Monitor of its application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from casework.app import App
from casework.durable.inbox import InboxModule, StoreInbox
from casework.durable.process_client import ProcessClient
from casework.process import INTAKE
from casework.sources.inbox import HttpInbox, InboxSettings
from casework.store.processes.inbox import InboxPlace
from tests.integration.api.conftest import TENANT, Door
from tests.integration.api.lines import door_to
from tests.integration.durable.conftest import House, eventually

ORDERS = InboxSettings(name="orders", body_bytes=200)
APP = App(
    processes=[replace(INTAKE, monitor=HttpInbox)],
    modules=[InboxModule(ORDERS)],
    monitors={"monitors": [{"monitorClass": "HttpInbox", "pollingInterval": "P1D", "sleepTime": "P1D"}]},
)
PLACE = InboxPlace(TENANT, "orders")


@pytest.fixture
async def orders(door: Door) -> AsyncIterator[Door]:
    """The API of an application with an inbox, and no worker."""
    async with door_to(door, APP) as made:
        yield made


async def send(door: Door, body: Any, key: str | None = None, **options: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await door.post("/v1/inbox/orders", body, headers=headers, **{"role": "operator", **options})


async def test_an_item_is_kept_once_for_its_key(orders: Door) -> None:
    """BP-22. 202; the same again 200, in another layout too; another body under its key 409."""
    first = await send(orders, {"amount": Decimal("10.50"), "to": "Ada"}, "order-7")
    assert (first.status, first.body) == (202, {"inbox": "orders", "key": "order-7", "state": "accepted"})
    again = await orders.post(
        "/v1/inbox/orders",
        role="operator",
        content=b'{ "to": "Ada", "amount": 10.50 }',
        headers={"Idempotency-Key": "order-7"},
    )
    assert (again.status, again.body["state"]) == (200, "known")
    other = await send(orders, {"amount": 11}, "order-7")
    assert (other.status, other.body["type"]) == (409, "urn:casework:problem:idempotency-conflict")
    nameless = [await send(orders, {"amount": 5}) for _ in range(2)]
    assert [each.status for each in nameless] == [202, 200]
    items = await StoreInbox(orders.db, PLACE).waiting(10)
    assert [str(item.body["amount"]) for item in items] == ["10.50", "5"]


async def test_what_is_not_accepted_is_refused(orders: Door, door: Door) -> None:
    """Size, form and type of the body, and the key, with the field; an inbox that is not there; another role."""
    for answer, field in (
        (await send(orders, {"text": "x" * 300}), "body"),
        (await send(orders, [1]), "body"),
        (await send(orders, {}, "x" * 300), "Idempotency-Key"),
        (await send(orders, None, content=b"{}", key=None), None),
    ):
        assert answer.status == (422 if field else 202)
        if field:
            assert answer.body["errors"][0]["field"] == field
    assert (await send(orders, {"a": 1}, tenant="other")).status == 404
    assert (await orders.post("/v1/inbox/bills", {}, role="operator")).status == 404
    assert (await send(door, {"a": 1})).status == 404
    assert (await send(orders, {"a": 1}, role="viewer")).status == 403


async def test_items_that_fail_wait_behind_the_others_or_are_put_away(orders: Door) -> None:
    """First those never tried; what is refused or taken waits no more, whatever is told of it later."""
    for number in range(4):
        await send(orders, {"n": number}, f"k{number}")
    inbox = StoreInbox(orders.db, PLACE)
    await inbox.later("k0", "the disk is full")
    await inbox.taken("k1")
    await inbox.refused("k2", "no amount")
    await inbox.taken("k2")
    assert [item.key for item in await inbox.waiting(10)] == ["k3", "k0"]
    assert [item.key for item in await inbox.waiting(1)] == ["k3"]
    async with orders.db.transaction() as conn:
        rows = await (
            await conn.execute("select key, state, why, tries from process_ops.inbox_items order by key")
        ).fetchall()
    assert rows == [
        ("k0", "waiting", "the disk is full", 1),
        ("k1", "taken", None, 1),
        ("k2", "refused", "no amount", 1),
        ("k3", "waiting", None, 0),
    ]


async def test_the_monitor_takes_items_in(orders: Door, database_dsn: str) -> None:
    """BP-22. Sent over HTTP, taken in by a worker: one Transaction for each item, known by its key."""
    await send(orders, {"amount": 7}, "order-1")
    await send(orders, {"amount": 8}, "order-2")
    house = House(database_dsn, orders.db, orders.run_client.engine, orders.settings, APP)
    async with house.worker():
        assert await ProcessClient(house.runs).start(TENANT, "intake", "olga")

        async def taken() -> bool:
            page = (await orders.get("/v1/transactions", status="INTAKE_COMPLETED")).body["items"]
            return {(row["natural_key"], row["data"]["amount"]) for row in page} == {
                ("orders:order-1", 7),
                ("orders:order-2", 8),
            } and not await StoreInbox(orders.db, PLACE).waiting(10)

        await eventually(taken, "both orders are taken in", 60)
