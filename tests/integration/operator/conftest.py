"""A database server of a test's own, to be stopped, filled and locked, with the platform and its API on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
import uvicorn
from temporalio.client import Client

from casework.api import create_app
from casework.app import App
from casework.cli.status_lines import Line
from casework.cli.status_look import look
from casework.durable.schedules import ensure_sweep
from casework.settings import Secret, Settings, TemporalSettings
from casework.settings.parts import DatabaseSettings
from casework.store import tokens
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.store.migrate import migrate
from casework.testing.databases import QUICK
from casework.values import loads
from tests.integration.durable.conftest import House, eventually

# Commits outlive a kill of the server, if not of the machine.
OPTIONS = {**QUICK, "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "30"}
STATEMENT_S = 2.0


@dataclass
class Site:
    """The platform on a database server that a test may hurt. `house` has the application and a worker."""

    server: LocalPostgres
    house: House
    url: str
    token: str = field(repr=False)

    async def api(self, path: str, **query: Any) -> Any:
        """The JSON of a GET, asked over HTTP as the command line does."""
        async with httpx2.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}) as client:
            answer = await client.get(path, params=query, timeout=40)
        assert answer.is_success, answer.text
        return loads(answer.content)

    async def doing(self, run_id: UUID) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api(f"/v1/runs/{run_id}"))["doing"]
        return found

    async def is_doing(self, run_id: UUID, kind: str, deadline_s: float = 60) -> dict[str, Any]:
        """What the run is doing, once it is of that kind."""

        async def see() -> dict[str, Any] | None:
            found = await self.doing(run_id)
            return found if found["kind"] == kind else None

        return await eventually(see, f"run {run_id} is {kind}", deadline_s)

    async def status(self) -> dict[str, Line]:
        """`casework status`, by part."""
        return {line.part: line for line in await look(self.house.settings, self.url)}

    async def status_with(self, part: str, state: str, text: str = "", deadline_s: float = 60) -> Line:
        """A line of the status, once it is in that state and says `text`."""

        async def see() -> Line | None:
            line = (await self.status()).get(part)
            return line if line is not None and line.state == state and text in line.text else None

        return await eventually(see, f"status: {part} is {state} with {text!r}", deadline_s)

    def admin(self) -> psycopg.Connection[Any]:
        """A superuser's session."""
        return psycopg.connect(self.house.dsn, autocommit=True)

    def does(self, statement: str) -> None:
        """A superuser's statement."""
        with self.admin() as conn:
            conn.execute(statement.encode())

    async def on(self, app: App) -> House:
        """The house with another application, published; no worker yet."""
        other = replace(self.house, app=app)
        await other.open()
        return other


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalPostgres]:
    made = LocalPostgres(tmp_path / "data", options=OPTIONS)
    made.start()
    yield made
    made.stop()


@asynccontextmanager
async def _served(site_of: Any, settings: Settings, dsn: str, house: House) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(await Database.open(dsn, max_size=4, wait_s=2, statement_timeout_s=5))
        async with await Database.open(dsn, role=None, max_size=1) as admin, admin.transaction() as conn:
            token = await tokens.create(conn, "olga", "default", ["admin"])
        app = create_app(settings, App(), db, house.runs)
        served = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
        serving = asyncio.create_task(served.serve())
        while not served.started:
            assert not serving.done()
            await asyncio.sleep(0.02)
        port = served.servers[0].sockets[0].getsockname()[1]
        try:
            yield site_of(f"http://127.0.0.1:{port}", token)
        finally:
            served.should_exit = True
            await serving


@pytest.fixture
async def site(server: LocalPostgres, temporal_client: Client, temporal_address: str) -> AsyncIterator[Site]:
    """The platform with the loan application and an API, and no worker."""
    dsn = server.dsn
    await migrate(dsn)
    temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
    settings = Settings(database=DatabaseSettings(url=Secret(dsn)), temporal=temporal)
    async with await Database.open(dsn, wait_s=1, statement_timeout_s=STATEMENT_S) as db:
        house = House(dsn, db, temporal_client, settings)
        await house.open()
        await ensure_sweep(temporal_client, temporal.task_queue)
        async with _served(lambda url, token: Site(server, house, url, token), settings, dsn, house) as made:
            yield made
