"""What an HTTP inbox accepts, and that each item becomes one Transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from dishka import Provider, Scope

from casework.errors import BusinessError, IdempotencyConflictError, InputError, SettingsError
from casework.process.local import LocalProject
from casework.process.shipped import INTAKE
from casework.sources.inbox import HttpInbox, Inbox, InboxItem, InboxSettings, accept, check_repeat

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
JSON = {"Content-Type": "application/json; charset=utf-8"}
SETTINGS = InboxSettings(body_bytes=1000)


class MemoryInbox:
    """Keeps items as a table would, for tests alone."""

    def __init__(self) -> None:
        self.items: dict[str, InboxItem] = {}
        self.states: dict[str, str] = {}

    async def put(self, item: InboxItem) -> bool:
        kept = self.items.setdefault(item.key, item)
        check_repeat(kept, item)
        return self.states.setdefault(item.key, "") == "" and kept is item

    async def waiting(self, most: int) -> Sequence[InboxItem]:
        fresh = [key for key, state in self.states.items() if state == ""]
        tried = [key for key, state in self.states.items() if state.startswith("later")]
        return [self.items[key] for key in (fresh + tried)[:most]]

    async def taken(self, key: str) -> None:
        self.states[key] = "taken"

    async def refused(self, key: str, why: str) -> None:
        self.states[key] = f"refused: {why}"

    async def later(self, key: str, why: str) -> None:
        self.states[key] = f"later: {why}"


def item(body: bytes, key: str | None = None) -> InboxItem:
    return accept(JSON | ({"Idempotency-Key": key} if key is not None else {}), body, AT, SETTINGS)


def over(inbox: MemoryInbox, monitor: type[HttpInbox] = HttpInbox, settings: InboxSettings = SETTINGS) -> LocalProject:
    module = Provider(scope=Scope.APP)
    module.provide(lambda: inbox, provides=Inbox)
    module.provide(lambda: settings, provides=InboxSettings)
    return LocalProject([replace(INTAKE, monitor=monitor, tray_size=10)], modules=[module])


def test_what_is_accepted() -> None:
    """The key of the header, an object with all its digits, and when it came."""
    made = accept({"content-type": "application/json", "IDEMPOTENCY-KEY": " k-1 "}, b'{"n": 1.50}', AT, SETTINGS)
    assert (made.key, made.body, made.received) == ("k-1", {"n": Decimal("1.50")}, AT)


def test_without_a_key_the_content_is_the_key() -> None:
    """The same object in another layout is the same item; another value is another."""
    one, same, other = item(b'{"a": 1, "b": 2}'), item(b'{ "b":2,"a":1 }'), item(b'{"a": 1, "b": 3}')
    assert one.key == same.key == f"sha256:{one.body_hash}"
    assert one.key != other.key


@pytest.mark.parametrize(
    ("headers", "body", "field", "told"),
    [
        ({}, b"{}", "Content-Type", "Content-Type is ''. Send application/json."),
        ({"Content-Type": "text/xml"}, b"{}", "Content-Type", "'text/xml'"),
        (JSON, b'{"a": "' + b"x" * 1000 + b'"}', "body", "over the limit of 1,000"),
        (JSON, b"", "body", "no JSON"),
        (JSON, b'{"a": NaN}', "body", "no JSON"),
        (JSON, b'{"a": "\xff"}', "body", "no JSON"),
        (JSON, b'{"a": 1, "a": 2}', "body", "names the key 'a' twice"),
        (JSON, b"[1]", "body", "body is list, not an object"),
        (JSON, b"[" * 900, "body", "no JSON"),
        (JSON, b'{"a":' * 70 + b"1" + b"}" * 70, "body", "nesting deeper than"),
        (JSON | {"Idempotency-Key": " "}, b"{}", "Idempotency-Key", "1 to 255 printable"),
        (JSON | {"Idempotency-Key": "x" * 256}, b"{}", "Idempotency-Key", "1 to 255 printable"),
        (JSON | {"Idempotency-Key": "a\nb"}, b"{}", "Idempotency-Key", "1 to 255 printable"),
    ],
)
def test_what_is_not_accepted(headers: dict[str, str], body: bytes, field: str, told: str) -> None:
    """Field, value and remedy, before anything is kept."""
    with pytest.raises(InputError) as raised:
        accept(headers, body, AT, SETTINGS)
    assert raised.value.field == field
    assert told in str(raised.value)


def test_what_a_database_cannot_hold_is_replaced() -> None:
    """By the rule of all values."""
    assert item(b'{"a": "x\\u0000y"}').body == {"a": "x\u2400y"}


async def test_a_repeated_request_is_no_second_item() -> None:
    """BP-22: idempotent. The same again is known; another body under the same key is refused."""
    inbox = MemoryInbox()
    assert await inbox.put(item(b'{"a": 1}', "k"))
    assert not await inbox.put(item(b'{"a":1}', "k"))
    with pytest.raises(IdempotencyConflictError, match="'k' was used"):
        await inbox.put(item(b'{"a": 2}', "k"))
    async with over(inbox) as made:
        await made.run("intake", polls=2)
        ((key, data),) = [(each.natural_key, each.data) for each in made.store.transactions.values()]
        assert (key, data) == ("http:k", {"a": 1})
    assert inbox.states == {"k": "taken"}


async def test_a_crash_between_keeping_and_marking_makes_no_second() -> None:
    """The item waits still, is known by its key, and is marked then."""
    inbox = MemoryInbox()
    await inbox.put(item(b'{"a": 1}', "k"))
    async with over(inbox) as made:
        made.store.keys.add("http:k")
        await made.run("intake")
        assert not made.store.transactions
    assert inbox.states == {"k": "taken"}


class Fussy(HttpInbox):
    """Refuses, or fails, as the item says."""

    async def save_input_entity(self, entity: InboxItem) -> Mapping[str, Any]:
        if "refuse" in entity.key:
            raise BusinessError("not for us", code="NOT_OURS")
        if "fail" in entity.key:
            raise ConnectionError("away")
        return await super().save_input_entity(entity)


async def test_bad_items_do_not_stop_the_rest() -> None:
    """BP-20. What is at fault itself waits no more; what failed for another reason waits behind all others."""
    inbox = MemoryInbox()
    for key in ("fail-1", "refuse", "fail-2", "good"):
        await inbox.put(item(b"{}", key))
    async with over(inbox, Fussy, InboxSettings(items_per_poll=3)) as made:
        await made.run("intake", polls=2)
        assert [each.natural_key for each in made.store.transactions.values()] == ["http:good"]
    assert inbox.states["refuse"] == "refused: not for us"
    assert inbox.states["fail-1"] == "later: away"


def test_settings_that_hold_nothing() -> None:
    """Field, value and remedy."""
    with pytest.raises(SettingsError, match=r"body_bytes is 0\. Give a number from 1"):
        InboxSettings(body_bytes=0)
    with pytest.raises(SettingsError, match="name is blank"):
        InboxSettings(name=" ")
