"""What was accepted over HTTP: kept once for its key, until an input Monitor takes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from casework.store import queries
from casework.store.database import Connection
from casework.values import Plain

_SQL = queries.load("inbox")


@dataclass(frozen=True, slots=True)
class InboxPlace:
    """An inbox of a tenant."""

    tenant: str
    inbox: str


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An item; `tries` counts how often a Monitor has told what became of it, `why` is what it told last."""

    key: str
    body: Plain
    body_hash: str
    received: datetime
    state: Literal["waiting", "taken", "refused"]
    tries: int
    why: str | None


async def put(
    conn: Connection, place: InboxPlace, *, key: str, body: Plain, body_hash: str, received: datetime
) -> bool:
    """Keep an item; False where its key is there already, and nothing is written."""
    params = queries.Writing(
        tenant=place.tenant, inbox=place.inbox, key=key, body_hash=body_hash, received=received
    ).json(body=body)
    return await queries.run(conn, _SQL["put"], params) > 0


async def get(conn: Connection, place: InboxPlace, key: str) -> InboxRow | None:
    """An item by its key."""
    params = {"tenant": place.tenant, "inbox": place.inbox, "key": key}
    return await queries.one(conn, _SQL["get"], params, InboxRow)


async def waiting(conn: Connection, place: InboxPlace, most: int) -> list[InboxRow]:
    """Items that were neither taken nor refused; first those never tried, the oldest first."""
    params = {"tenant": place.tenant, "inbox": place.inbox, "most": most}
    return await queries.many(conn, _SQL["waiting"], params, InboxRow)


async def told(
    conn: Connection,
    place: InboxPlace,
    key: str,
    state: Literal["waiting", "taken", "refused"],
    why: str | None,
    at: datetime,
) -> bool:
    """Write what became of an item that waits; False where it waits no more, and nothing is written."""
    params = queries.Writing(tenant=place.tenant, inbox=place.inbox, key=key, state=state, why=why, at=at)
    return await queries.run(conn, _SQL["told"], params) > 0
