"""Fixtures that every tier may use: real servers, started once for each test process, and cheap databases on them.

`postgres`              the embedded server of this test process (that of the plugin, `casework.testing.plugin`)
`database_dsn`          a database of its own for one test, migrated, owned by the superuser
`empty_database_dsn`    the same without any table
`temporal_address`      the development server of this test process, `host:port`
`temporal_client`       a client of it for one test, with the project's data converter
`time_skipping_env`     a Temporal test server of its own for one test, where time can be skipped
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from casework.durable.connection import connect
from casework.durable.converter import DATA_CONVERTER
from casework.durable.local import LocalTemporal
from casework.durable.local.binaries import TEST_SERVER, find_program
from casework.settings import Settings, TemporalSettings
from casework.store.local import LocalPostgres
from casework.testing.databases import Databases, run_now

# The same examples in every run, so that a run says something about the change and not about luck. To search for new
# ones: `pytest --hypothesis-profile explore`; what it finds becomes an example of its test.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("steady")

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30

pytest_plugins = ["casework.testing.plugin", "pytester"]


def pytest_configure() -> None:
    """Put temporary folders into memory, where the system has a file system there with room.

    A test's database is some 500 files, and to make and drop them on a disk takes more than most tests do themselves.
    What is written there outlives a killed process as on a disk; that it outlives the machine is tested nowhere.
    """
    if _takes_folders(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _takes_folders(place: Path) -> bool:
    """Whether `place` is a folder where we may write and run programs, with `ROOM_BYTES` free."""
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK) or shutil.disk_usage(place).free < ROOM_BYTES:
        return False
    return not os.statvfs(place).f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session")
def postgres(casework_postgres: LocalPostgres) -> LocalPostgres:
    """The embedded PostgreSQL of this test process. Each xdist worker has its own: a second costs under a second."""
    return casework_postgres


@pytest.fixture(scope="session")
def migrated_template(casework_databases: Databases) -> str:
    """The name of a database that has every migration; tests copy it."""
    return casework_databases.template


@pytest.fixture
def database_dsn(casework_databases: Databases) -> Iterator[str]:
    """The superuser's URL of a migrated database made for this test alone."""
    with casework_databases.migrated() as dsn:
        yield dsn


@pytest.fixture
def empty_database_dsn(casework_databases: Databases) -> Iterator[str]:
    """The superuser's URL of an empty database made for this test alone."""
    with casework_databases.empty() as dsn:
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
