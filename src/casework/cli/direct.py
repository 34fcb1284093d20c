"""For commands that work on the database itself: one short piece of work on it, in a role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from casework.store.database import Connection

Made = TypeVar("Made")


def on_database(url: str, role: str | None, work: Callable[[Connection], Awaitable[Made]]) -> Made:
    """The result of `work` in one database transaction, as `role`.

    Raises:
        StoreUnavailableError: the database cannot be reached.
    """
    from casework.store.database import Database

    async def run() -> Made:
        async with await Database.open(url, role=role, max_size=1, name="casework-cli") as db, db.transaction() as conn:
            return await work(conn)

    return asyncio.run(run())
