"""For commands that work on the database itself: its URLs by role, and one short piece of work on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from casework.cli import stack
from casework.errors import SettingsError
from casework.settings import Secret, Settings

if TYPE_CHECKING:
    from casework.store.database import Connection

Made = TypeVar("Made")


def admin_url(settings: Settings | None = None) -> str:
    """The URL of the database as its owner.

    Raises:
        SettingsError: none is known.
    """
    database = (settings or stack.load()).database
    return _named(database.admin_url or database.url)


def runtime_url() -> str:
    """The URL of the database as API and workers use it.

    Raises:
        SettingsError: none is known.
    """
    return _named(stack.load().database.url)


def policy_url() -> str:
    """The URL of the database as the policy's owner.

    Raises:
        SettingsError: none is known.
    """
    database = stack.load().database
    return _named(database.policy_url or database.admin_url or database.url)


def _named(url: Secret | None) -> str:
    if url is None:
        raise SettingsError(
            "No database is named. Start one with `casework dev`, or set CASEWORK_DATABASE_URL.",
            field="CASEWORK_DATABASE_URL",
        )
    return url.reveal()


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
