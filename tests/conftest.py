"""Fixtures that every tier may use: real servers, started once for each test process, and cheap databases on them.

`postgres`              the embedded server of this test process
`database_dsn`          a database of its own for one test, migrated, owned by the superuser
`empty_database_dsn`    the same without any table
`temporal_address`      the development server of this test process, `host:port`
`temporal_client`       a client of it for one test, with the project's data converter
`time_skipping_env`     a Temporal test server of its own for one test, where time can be skipped
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import hypothesis
import psycopg
import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from casework.durable.connection import connect
from casework.durable.converter import DATA_CONVERTER
from casework.durable.local import LocalTemporal
from casework.durable.local.binaries import TEST_SERVER, find_program
from casework.settings import Settings, TemporalSettings
from casework.store.local import LocalPostgres

Result = TypeVar("Result")

# The same examples in every run, so that a run says something about the change and not about luck. To search for new
# ones: `pytest --hypothesis-profile explore`; what it finds becomes an example of its test.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("steady")

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
        run_now(migrate(with_database(postgres.dsn, TEMPLATE)))
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


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of this test process's Temporal development server."""
    server = LocalTemporal(tmp_path_factory.mktemp("temporal"))
    try:
        yield run_now(server.start())
    finally:
        server.stop()


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    """A client of the development server, made in the test's own event loop."""
    return await connect(Settings(temporal=TemporalSettings(address=temporal_address)))


@pytest.fixture
async def time_skipping_env() -> AsyncIterator[WorkflowEnvironment]:
    """A test server that skips time. It knows no schedules and no lists; results are awaited one at a time."""
    program = find_program(TEST_SERVER)
    path = str(program) if program else None
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=path, data_converter=DATA_CONVERTER
    ) as environment:
        yield environment


def run_now(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end from synchronous code, in a loop of its own that no one else meets."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


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


def _migrate() -> Callable[[str], Coroutine[Any, Any, object]] | None:
    try:
        return getattr(importlib.import_module("casework.store.migrate"), "migrate", None)
    except ModuleNotFoundError:
        return None
