"""Fixtures that every tier may use: real servers, started once for each test process, and cheap databases on them.

`postgres`              the embedded server of this test process
`database_dsn`          a database of its own for one test, migrated, owned by the superuser
`empty_database_dsn`    the same without any table
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

from casework.store.local import LocalPostgres

TEMPLATE = "casework_template"

# A test's data may be lost with the machine: do not wait for the disk.
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def with_database(dsn: str, name: str) -> str:
    """The same server's URL for another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """The embedded PostgreSQL of this test process. Each xdist worker has its own: a second costs under a second."""
    with LocalPostgres(tmp_path_factory.mktemp("postgres"), options=QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres: LocalPostgres) -> str:
    """The name of a database that has every migration; tests copy it."""
    _admin(postgres.dsn, f"CREATE DATABASE {TEMPLATE}")
    migrate = _migrate()
    if migrate:
        asyncio.run(migrate(with_database(postgres.dsn, TEMPLATE)))  # type: ignore[arg-type]  # an async function
    return TEMPLATE


@pytest.fixture
def database_dsn(postgres: LocalPostgres, migrated_template: str) -> Iterator[str]:
    """The superuser's URL of a migrated database made for this test alone."""
    with _database(postgres.dsn, f"TEMPLATE {migrated_template} STRATEGY FILE_COPY") as dsn:
        yield dsn


@pytest.fixture
def empty_database_dsn(postgres: LocalPostgres) -> Iterator[str]:
    """The superuser's URL of an empty database made for this test alone."""
    with _database(postgres.dsn, "") as dsn:
        yield dsn


@contextmanager
def _database(dsn: str, how: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    _admin(dsn, f"CREATE DATABASE {name} {how}")
    try:
        yield with_database(dsn, name)
    finally:
        _admin(dsn, f"DROP DATABASE {name} WITH (FORCE)")


def _admin(dsn: str, statement: str) -> None:
    with psycopg.connect(with_database(dsn, "postgres"), autocommit=True) as connection:
        connection.execute(statement.encode())


def _migrate() -> Callable[[str], object] | None:
    try:
        return getattr(importlib.import_module("casework.store.migrate"), "migrate", None)
    except ModuleNotFoundError:
        return None
