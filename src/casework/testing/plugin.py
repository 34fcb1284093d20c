"""Fixtures for the tests of Tasks and processes; pytest loads them by itself where this package is installed.

`casework_task`       runs one Task from its class
`casework_project`    makes a project's processes in memory, and closes them
`casework_clock`      the invented time of both; `skip` lets some pass
`casework_model`      a language model by script
`casework_reviewer`   a person by rules
`casework_store`      a migrated database of its own on a real PostgreSQL

All are for plain test functions, without a plugin for coroutines. What they need is imported when a test asks for them,
so that the plugin costs others nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from casework.store.local import LocalPostgres
    from casework.testing.answers import ModelScript, ScriptedReviewer
    from casework.testing.databases import Databases, Store
    from casework.testing.processes import InventedClock, ProjectFixture, TaskFixture, TestLoop


@pytest.fixture
def casework_clock() -> InventedClock:
    """The invented time of one test, shared by its Tasks and projects."""
    from casework.testing.processes import InventedClock  # noqa: PLC0415

    return InventedClock()


@pytest.fixture
def casework_model() -> ModelScript:
    """A language model without answers; `says` and `calls` add some."""
    from casework.testing.answers import ModelScript  # noqa: PLC0415

    return ModelScript()


@pytest.fixture
def casework_reviewer() -> ScriptedReviewer:
    """A person without rules; `decides` adds one."""
    from casework.testing.answers import ScriptedReviewer  # noqa: PLC0415

    return ScriptedReviewer()


@pytest.fixture
def casework_loop() -> Iterator[TestLoop]:
    """The event loop in which the Tasks of one test run."""
    from casework.testing.processes import TestLoop  # noqa: PLC0415

    loop = TestLoop()
    yield loop
    loop.close()


@pytest.fixture
def casework_task(
    casework_loop: TestLoop,
    casework_clock: InventedClock,
    casework_model: ModelScript,
    casework_reviewer: ScriptedReviewer,
) -> TaskFixture:
    """Run one Task: `casework_task(Price, {"amount": 5}, modules=[...])`."""
    from casework.testing.processes import TaskFixture  # noqa: PLC0415

    return TaskFixture(casework_loop, casework_clock, casework_model, casework_reviewer)


@pytest.fixture
def casework_project(
    casework_loop: TestLoop,
    casework_clock: InventedClock,
    casework_model: ModelScript,
    casework_reviewer: ScriptedReviewer,
) -> ProjectFixture:
    """Make a project in memory: `casework_project(app)`, or of processes."""
    from casework.testing.processes import ProjectFixture  # noqa: PLC0415

    return ProjectFixture(casework_loop, casework_clock, casework_model, casework_reviewer)


@pytest.fixture(scope="session")
def casework_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """The embedded PostgreSQL of this test process, or of this worker of pytest-xdist."""
    from casework.errors import LocalStackError  # noqa: PLC0415
    from casework.store.local import LocalPostgres  # noqa: PLC0415
    from casework.store.local.binaries import binaries  # noqa: PLC0415
    from casework.testing.databases import QUICK  # noqa: PLC0415

    try:
        binaries()
    except LocalStackError as error:
        pytest.skip(str(error))
    with LocalPostgres(tmp_path_factory.mktemp("casework-postgres"), options=QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def casework_databases(casework_postgres: LocalPostgres) -> Databases:
    """Makes databases on that server."""
    from casework.testing.databases import Databases  # noqa: PLC0415

    return Databases(casework_postgres.dsn)


@pytest.fixture
def casework_store(casework_databases: Databases) -> Iterator[Store]:
    """A migrated database of one test."""
    from casework.testing.databases import Store  # noqa: PLC0415

    with casework_databases.migrated() as dsn:
        yield Store(dsn)
