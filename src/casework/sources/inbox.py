"""What others send over HTTP as a source of work: what is accepted, where it waits, and the monitor.

Pure: the route that receives and the table that keeps are elsewhere. A request is accepted once for its key; the same
sent again is no second item, and something else under the same key is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from casework.errors import BusinessError, IdempotencyConflictError, InputError, SettingsError
from casework.process.monitors import InputMonitorTask
from casework.values import ENTRY_DEPTH, Plain, TwiceError, bounded, clean, content_hash, instant, loads_once

KEY_HEADER = "idempotency-key"
KEY_LIMIT = 255
MEDIA_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSettings:
    """What is accepted.

    Raises:
        SettingsError: a field has no valid value.
    """

    name: str = "http"
    """What natural keys begin with."""
    body_bytes: int = 128 * 1024
    """Largest body."""
    items_per_poll: int = 500

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingsError("name is blank. Give one.", field="name")
        for name in ("body_bytes", "items_per_poll"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}. Give a number from 1.", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """Something accepted. `body` is a JSON object; `received` an aware instant; `body_hash` of the body as JSON."""

    key: str
    body: Mapping[str, Plain]
    body_hash: str
    received: datetime


def accept(headers: Mapping[str, str], body: bytes, received: datetime, settings: InboxSettings) -> InboxItem:
    """The item that a request is; `headers` by their names in any case.

    Its key is the header `Idempotency-Key`, else the hash of the body's content: the same object in another layout is
    the same item.

    Raises:
        InputError: type, key, size or body are not what is accepted; `field` names which.
        UnserialisableError: `received` has no zone.
    """
    said = {name.lower(): value for name, value in headers.items()}
    instant(received, "received")
    media = said.get("content-type", "").partition(";")[0].strip().lower()
    if media != MEDIA_TYPE:
        raise InputError(f"Content-Type is {media!r:.100}. Send {MEDIA_TYPE}.", field="Content-Type")
    if len(body) > settings.body_bytes:
        raise InputError(
            f"body has {len(body):,} bytes, over the limit of {settings.body_bytes:,}. Send less, or a reference.",
            field="body",
        )
    value = _object(body)
    digest = content_hash(value)
    return InboxItem(key=_key(said.get(KEY_HEADER), digest), body=value, body_hash=digest, received=received)


def check_repeat(kept: InboxItem, again: InboxItem) -> None:
    """Whether `again` is what was accepted before under its key.

    Raises:
        IdempotencyConflictError: it has another body.
    """
    if kept.body_hash != again.body_hash:
        raise IdempotencyConflictError(
            f"Idempotency-Key {again.key!r} was used on {instant(kept.received)} with another body. Send a new key "
            "with a new item."
        )


class Inbox(Protocol):
    """Where accepted items wait until they are taken. Keys are known for ever, or as long as a sender may repeat."""

    async def put(self, item: InboxItem) -> bool:
        """Keep the item; False where its key is known (see `check_repeat`)."""

    async def waiting(self, most: int) -> Sequence[InboxItem]:
        """Items that were neither taken nor refused; first those never tried, the oldest first."""

    async def taken(self, key: str) -> None:
        """The item has its Transaction."""

    async def refused(self, key: str, why: str) -> None:
        """The item cannot have one."""

    async def later(self, key: str, why: str) -> None:
        """The item was tried in vain, and waits behind those that were not."""


class HttpInbox(InputMonitorTask[InboxItem]):
    """Each item a Transaction, its body the data. Derive from it to make other data of it.

    A project provides `Inbox` and `InboxSettings`.
    """

    def __init__(self, inbox: Inbox, settings: InboxSettings) -> None:
        self.inbox = inbox
        self.settings = settings

    async def query_input_entities(self) -> Sequence[InboxItem]:
        """The items that wait."""
        return await self.inbox.waiting(self.settings.items_per_poll)

    async def save_input_entity(self, entity: InboxItem) -> Mapping[str, Any]:
        """The body."""
        return entity.body

    async def acknowledge_input_entity(self, entity: InboxItem) -> None:
        """It waits no more."""
        await self.inbox.taken(entity.key)

    async def reject_input_entity(self, entity: InboxItem, error: Exception) -> None:
        """It waits no more where it is at fault itself; else behind all others."""
        at_fault = isinstance(error, (BusinessError, InputError))
        await (self.inbox.refused if at_fault else self.inbox.later)(entity.key, str(error))

    def natural_key(self, entity: InboxItem) -> str | None:
        """The key of the item."""
        return f"{self.settings.name}:{entity.key}"


def _object(body: bytes) -> dict[str, Plain]:
    try:
        value = loads_once(body.decode("utf-8"))
    except TwiceError as error:
        raise InputError(f"body {error}. Name each once.", field="body") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"body is no JSON ({str(error)[:200]}). Send one object in UTF-8.", field="body") from None
    if not isinstance(value, dict):
        raise InputError(f"body is {type(value).__name__}, not an object. Send one.", field="body")
    made: dict[str, Plain] = clean(bounded(value, "body", depth=ENTRY_DEPTH - 1)).value
    return made


def _key(said: str | None, digest: str) -> str:
    if said is None:
        return f"sha256:{digest}"
    key = said.strip()
    if not key or len(key) > KEY_LIMIT or not (key.isascii() and key.isprintable()):
        raise InputError(
            f"Idempotency-Key is {said!r:.100}. Send 1 to {KEY_LIMIT} printable ASCII characters, new for each item.",
            field="Idempotency-Key",
        )
    return key
