"""For commands that work on the database itself: one short piece of work on it, in a role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from casework.store.database import Connection

Made = TypeVar("Made")


STATEMENT_S = 10.0
"""How long one statement may take, in seconds, unless a command says otherwise."""


def on_database(
    url: str,
    role: str | None,
    work: Callable[[Connection], Awaitable[Made]],
    *,
    statement_timeout_s: float = STATEMENT_S,
) -> Made:
    """The result of `work` in one database transaction, as `role`.

    Raises:
        StoreUnavailableError: the database cannot be reached.
    """
    from casework.store.database import Database

    async def run() -> Made:
        opening = Database.open(
            url, role=role, max_size=1, name="casework-cli", statement_timeout_s=statement_timeout_s
        )
        async with await opening as db, db.transaction() as conn:
            return await work(conn)

    return asyncio.run(run())
