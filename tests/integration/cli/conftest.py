"""A served API with a worker beside it, both in a thread of this process, and the command line in front of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import uvicorn

from casework.api import create_app
from casework.app import App
from casework.cli.root import code_of_run
from casework.durable.activities.services import Services
from casework.durable.client import RunClient
from casework.durable.connection import connect
from casework.durable.worker import make_worker
from casework.models.catalogue import Models
from casework.settings import Secret, Settings, TemporalSettings
from casework.settings.parts import DatabaseSettings
from casework.store import tokens
from casework.store.database import Database
from casework.values import loads
from tests.integration.api.conftest import LETTER, publish

READY_S = 30


class Served(threading.Thread):
    """The API on a free port and a worker on its task queue, until `stop`."""

    def __init__(self, settings: Settings, dsn: str, app: App) -> None:
        super().__init__(name="served", daemon=True)
        self._settings, self._dsn, self._app = settings, dsn, app
        self._ready = threading.Event()
        self._server: uvicorn.Server | None = None
        self.token, self.url = "", ""
        self.error: BaseException | None = None

    def begin(self) -> None:
        self.start()
        assert self._ready.wait(READY_S), "the API did not come up"
        assert self.error is None, self.error

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        self.join(READY_S)

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # the test's thread tells it
            self.error = error
            self._ready.set()

    async def _main(self) -> None:
        client = await connect(self._settings)
        async with (
            await Database.open(self._dsn, max_size=4) as db,
            await Database.open(self._dsn, role=None, max_size=1) as admin,
        ):
            await publish(db, LETTER)
            async with admin.transaction() as conn:
                self.token = await tokens.create(conn, "olga", "default", ["admin"])
            app = create_app(self._settings, self._app, db, RunClient(client, self._settings.temporal.task_queue))
            self._server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
            async with make_worker(client, Services(db, self._app, Models({}), self._settings), self._settings):
                serving = asyncio.create_task(self._server.serve())
                while not self._server.started:
                    assert not serving.done()
                    await asyncio.sleep(0.02)
                port = self._server.servers[0].sockets[0].getsockname()[1]
                self.url = f"http://127.0.0.1:{port}"
                self._ready.set()
                await serving


@dataclass
class Line:
    """The command line: exit code, what stood on stdout and on stderr."""

    read: Callable[[], Any]

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = code_of_run(list(arguments))
        captured = self.read()
        return code, captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        """The JSON of a command that succeeds."""
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return loads(out)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and an environment that names no server."""
    monkeypatch.chdir(tmp_path)
    for name in ("CASEWORK_API_URL", "CASEWORK_TOKEN", "CASEWORK_DATABASE_URL", "CASEWORK_APP", "TEMPORAL_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def line(folder: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder."""
    return Line(capsys.readouterr)


@pytest.fixture
def app() -> App:
    """The application that is served; a module of tests may have another."""
    return App()


@pytest.fixture
def served(
    folder: Path, database_dsn: str, temporal_address: str, app: App, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """The API and a worker, named by the environment."""
    temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
    settings = Settings(database=DatabaseSettings(url=Secret(database_dsn)), temporal=temporal)
    made = Served(settings, database_dsn, app)
    made.begin()
    monkeypatch.setenv("CASEWORK_API_URL", made.url)
    monkeypatch.setenv("CASEWORK_TOKEN", made.token)
    monkeypatch.setenv("CASEWORK_DATABASE_URL", database_dsn)
    yield made
    made.stop()
