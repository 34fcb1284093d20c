"""Real servers in a temporary folder, PostgreSQL and Temporal; one database and one task queue for each side."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import psycopg
from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.support.billing import metrics_address
from casework.app import App
from casework.durable.activities.services import Services
from casework.durable.connection import connect
from casework.durable.local import LocalTemporal
from casework.durable.publish import publish
from casework.models.catalogue import Models
from casework.policy import parse_policy
from casework.settings import Settings, TemporalSettings
from casework.store import policy, reviews, runs, workflows
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.store.migrate import migrate
from casework.store.roles import POLICY_OWNER
from casework.store.rows import RunRow
from casework.values import content_hash

TENANT = "default"
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.02
_OTHERS: LiteralString = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""
_ROWS: LiteralString = "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_user_tables"


@dataclass
class Side:
    """One side of a comparison: a database of its own, a task queue, the application published there."""

    name: str
    dsn: str
    db: Database
    client: Client
    services: Services
    settings: Settings
    written: int
    """Rows written in the database before the first run."""

    async def rows(self) -> int:
        """Rows that runs have written; ends the side's own connections."""
        await self.db.close()
        return await rows_written(self.dsn) - self.written

    async def accept(self, workflow: str, given: dict[str, Any]) -> tuple[RunRow, Any]:
        """The run's row, PENDING as the API writes it, and the workflow it is pinned to."""
        async with self.db.transaction() as conn:
            found = await workflows.latest(conn, TENANT, workflow)
            assert found is not None
            new = runs.NewRun(
                tenant=TENANT,
                run_id=uuid4(),
                workflow_name=workflow,
                workflow_version=found[0],
                user="ann",
                request=given,
                request_hash=content_hash(given),
            )
            row, _ = await runs.create_pending(conn, new)
        return row, found[1]

    async def reaches(self, run_id: UUID, status: str) -> RunRow:
        """The run's row as soon as it has that status.

        Raises:
            TimeoutError: it has not in a minute.
        """
        async with asyncio.timeout(PATIENCE_S):
            while True:
                async with self.db.transaction() as conn:
                    row = await runs.get(conn, TENANT, run_id)
                if row is not None and row.status == status:
                    return row
                await asyncio.sleep(LOOK_EVERY_S)

    async def review(self, run_id: UUID) -> str:
        """The id of the review that the run waits for."""
        async with self.db.transaction() as conn:
            found = await reviews.current(conn, TENANT, run_id)
        assert found is not None
        return str(found.review_id)


@dataclass(frozen=True)
class Servers:
    """The servers of one measurement."""

    folder: Path
    postgres: LocalPostgres
    temporal: LocalTemporal

    @asynccontextmanager
    async def side(self, name: str, app: App, limits: str) -> AsyncIterator[Side]:
        """A fresh database `name`, migrated, with the application and its policy; and a queue of the same name."""
        dsn = self.new_database(name)
        await migrate(dsn)
        settings = Settings(temporal=TemporalSettings(address=self.temporal.address, task_queue=name))
        await _furnish(dsn, app, limits)
        written = await rows_written(dsn)
        async with await Database.open(dsn) as db:
            services = Services(db, app, Models(app.scripts), settings)
            yield Side(name, dsn, db, await connect(settings), services, settings, written)

    def new_database(self, name: str) -> str:
        """An empty database of that name; its URL."""
        with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return urlunsplit(urlsplit(self.postgres.dsn)._replace(path=f"/{name}"))

    @property
    def metrics_url(self) -> str:
        """Where Temporal counts."""
        return metrics_address((self.folder / "temporal" / "temporal.log").read_text())

    @property
    def temporal_pid(self) -> int:
        """Temporal's process."""
        assert self.temporal.pid is not None
        return self.temporal.pid


async def _furnish(dsn: str, app: App, limits: str) -> None:
    """What `casework dev` does before the first run, in connections of its own that are closed again."""
    parsed = parse_policy(limits, "csv")
    async with await Database.open(dsn) as db:
        await publish(app, db)
    async with await Database.open(dsn, role=POLICY_OWNER) as owner, owner.transaction() as conn:
        await policy.load(conn, parsed.limits)


async def rows_written(dsn: str) -> int:
    """Rows inserted, updated or deleted in a database so far; waits for its sessions to end, which hands in counts."""
    async with asyncio.timeout(PATIENCE_S):
        with psycopg.connect(dsn, autocommit=True) as connection:
            while _number(connection, _OTHERS):  # noqa: ASYNC110  # no event tells that another's session has ended
                await asyncio.sleep(LOOK_EVERY_S)
            return _number(connection, _ROWS)


def _number(connection: psycopg.Connection[Any], query: LiteralString) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    """PostgreSQL and Temporal, started in a folder that goes away with them."""
    with tempfile.TemporaryDirectory(prefix="casework-bench-") as folder:
        place = Path(folder)
        with LocalPostgres(place / "postgres") as postgres:
            async with LocalTemporal(place / "temporal") as temporal:
                yield Servers(place, postgres, temporal)


@asynccontextmanager
async def working(workers: Sequence[Worker]) -> AsyncIterator[None]:
    """With all of these at work."""
    async with AsyncExitStack() as stack:
        for worker in workers:
            await stack.enter_async_context(worker)
        yield
