"""The inboxes of the installation: what the API accepts for an application, kept in its database until it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dishka import Provider, Scope

from casework.sources.inbox import Inbox, InboxItem, InboxSettings, check_repeat
from casework.store.database import Database
from casework.store.processes import inbox
from casework.store.processes.inbox import InboxPlace, InboxRow
from casework.values import shortened


@dataclass(frozen=True)
class StoreInbox:
    """An inbox in a table: what `HttpInbox` asks for as `Inbox`."""

    db: Database
    place: InboxPlace

    async def put(self, item: InboxItem) -> bool:
        """Keep the item; False where it was accepted before.

        Raises:
            IdempotencyConflictError: something else was accepted under its key.
        """
        async with self.db.transaction() as conn:
            new = await inbox.put(
                conn,
                self.place,
                key=item.key,
                body=dict(item.body),
                body_hash=item.body_hash,
                received=item.received,
            )
            kept = None if new else await inbox.get(conn, self.place, item.key)
        if kept is not None:
            check_repeat(_item(kept), item)
        return new

    async def waiting(self, most: int) -> Sequence[InboxItem]:
        """Items that were neither taken nor refused; first those never tried, the oldest first."""
        async with self.db.transaction() as conn:
            return [_item(row) for row in await inbox.waiting(conn, self.place, most)]

    async def taken(self, key: str) -> None:
        """The item has its Transaction."""
        await self._told(key, "taken", None)

    async def refused(self, key: str, why: str) -> None:
        """The item cannot have one."""
        await self._told(key, "refused", why)

    async def later(self, key: str, why: str) -> None:
        """The item was tried in vain, and waits behind those that were not."""
        await self._told(key, "waiting", why)

    async def _told(self, key: str, state: Literal["waiting", "taken", "refused"], why: str | None) -> None:
        told = None if why is None else shortened(why)
        async with self.db.transaction() as conn:
            await inbox.told(conn, self.place, key, state, told, datetime.now(UTC))


def _item(row: InboxRow) -> InboxItem:
    return InboxItem(key=row.key, body=row.body, body_hash=row.body_hash, received=row.received)


class InboxModule(Provider):
    """A module for `App(modules=...)`: the API accepts at `/v1/inbox/NAME`, and `HttpInbox` takes from there.

    `settings.name` is the name. An application has one inbox; `tenant` is whose it is.
    """

    def __init__(self, settings: InboxSettings | None = None, tenant: str = "default") -> None:
        super().__init__(scope=Scope.APP)
        self.settings = settings or InboxSettings()
        self.tenant = tenant
        self.provide(self.inbox, provides=Inbox)
        self.provide(self._own_settings, provides=InboxSettings)

    def inbox(self, db: Database) -> Inbox:
        """The inbox in a database."""
        return StoreInbox(db, InboxPlace(self.tenant, self.settings.name))

    def _own_settings(self) -> InboxSettings:
        return self.settings
