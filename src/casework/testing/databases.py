"""Databases of tests on one server: a template with every migration, and cheap copies of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg

from casework.store.database import Database
from casework.store.migrate import migrate

Result = TypeVar("Result")

QUICK: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
}
"""Options of a server whose data may be lost with the machine: it does not wait for the disk."""
_TEMPLATE = "casework_template"


def with_database(dsn: str, name: str) -> str:
    """The same server's URL for another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def run_now(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end from synchronous code, in a loop of its own that no one else meets."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class Databases:
    """Makes databases on the server at `dsn`, a superuser's URL, and drops them."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._prepared: set[str] = set()

    @cached_property
    def template(self) -> str:
        """The name of a database that has every migration; made when it is first asked for."""
        self._admin(f"CREATE DATABASE {_TEMPLATE}")
        run_now(migrate(with_database(self._dsn, _TEMPLATE)))
        return _TEMPLATE

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """The superuser's URL of a new database with every migration, dropped at the end of the block."""
        with self._made(_copy_of(self.template)) as dsn:
            yield dsn

    @contextmanager
    def prepared(self, name: str, prepare: Callable[[str], None]) -> Iterator[str]:
        """As `migrated`, with what `prepare` wrote. It is called once for each `name`, with the URL to write to."""
        if name not in self._prepared:
            self._admin(f"CREATE DATABASE {name} {_copy_of(self.template)}")
            prepare(with_database(self._dsn, name))
            self._prepared.add(name)
        with self._made(_copy_of(name)) as dsn:
            yield dsn

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The superuser's URL of a new database without a table, dropped at the end of the block."""
        with self._made("") as dsn:
            yield dsn

    @contextmanager
    def _made(self, how: str) -> Iterator[str]:
        name = f"test_{uuid4().hex}"
        self._admin(f"CREATE DATABASE {name} {how}")
        try:
            yield with_database(self._dsn, name)
        finally:
            self._admin(f"DROP DATABASE {name} WITH (FORCE)")

    def _admin(self, statement: str) -> None:
        with psycopg.connect(with_database(self._dsn, "postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


def _copy_of(template: str) -> str:
    return f"TEMPLATE {template} STRATEGY FILE_COPY"


class Store:
    """A migrated database of one test. `dsn` is its superuser's URL."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def execute(self, statement: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser and commit; its rows, if it has any.

        Raises:
            psycopg.Error: the server refuses it.
        """
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), params)
            return cursor.fetchall() if cursor.description else []

    async def open(self, role: str | None = "casework_runtime") -> Database:
        """A pool of connections in `role`, by default the worker's. Whoever opens it closes it."""
        return await Database.open(self.dsn, role=role, max_size=4, name="casework-test")
