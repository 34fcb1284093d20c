"""The local stack: PostgreSQL, Temporal, workers and the API on one folder, started and stopped together.

`start` takes the folder's lock, starts what the settings do not name outside, migrates, publishes the application's
workflows, makes the local token, and starts the services. `watch` restarts what crashes. `stop` ends all in order:
services first, so that they can still write, then Temporal, then PostgreSQL.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from casework.children.family import kill_family
from casework.children.files import write_private
from casework.children.identity import look
from casework.children.locks import FileLock
from casework.children.ports import HOST, is_free, kept_port
from casework.cli import preparation
from casework.cli.local_servers import LocalServers
from casework.cli.services import DRAIN_MARGIN_S, Service, child_environment, end_leftovers
from casework.cli.serving import GRACE_S as API_GRACE_S
from casework.errors import LocalStackError, StateError
from casework.settings import Settings
from casework.values import dumps, loads

if TYPE_CHECKING:
    from casework.app import App

READY_TIMEOUT_S = 60.0
POLL_SECONDS = 0.1
API_TRIES = 3
LISTENING = "Listening on "
"""What `casework api` says once its port is its own."""


class Stack:
    """Everything a case needs, on one machine; also an async context manager.

    Start it from the main thread (on Linux the servers end with the thread that started them).

    Args:
        home: The stack's folder; made if missing. Nothing outside it is changed.
        settings: A database or Temporal named here is used and not started; both commands and services get the rest.
        app_ref: The application as `module:name`; None for the settings' own.
    """

    def __init__(self, home: Path, settings: Settings, app_ref: str | None = None, tables: Sequence[Path] = ()) -> None:
        self.home = home.absolute()
        app = replace(settings.app, home=self.home, reference=app_ref or settings.app.reference)
        self.settings = replace(settings, app=app)
        self.tables = tables
        """Files of SQL for tables of the application's own."""
        self.workers: list[Service] = []
        self.api: Service | None = None
        self.token = ""
        self.displaced: list[str] = []
        """What was applied before and gave way to the application's own at this start, as `AiWorkflow/desk`."""
        self._lock = FileLock(self.home / "dev.lock")
        self.servers = LocalServers(self.home, settings)
        self._numbered = 0
        self._app: App | None = None

    @property
    def dsn(self) -> str:
        """The database's URL as API and workers use it."""
        return self.settings.database.runtime_dsn()

    @property
    def admin_dsn(self) -> str:
        """The database's URL as its owner."""
        return self.settings.database.owner_dsn()

    @property
    def temporal_address(self) -> str:
        """Host and port of Temporal; empty where a profile names it."""
        return self.settings.temporal.address or ""

    @property
    def api_url(self) -> str:
        """Where the API answers."""
        host = self.settings.api.host
        # An address that means "all" is none to connect to.
        shown = HOST if host in {"0.0.0.0", "::"} else host  # noqa: S104  # compared, not listened on
        return (
            f"http://[{shown}]:{self.settings.api.port}" if ":" in shown else f"http://{shown}:{self.settings.api.port}"
        )

    def find_app(self) -> App:
        """The application, loaded once; first of all, since a wrong name or model should cost nothing.

        Raises:
            InputError: it cannot be found or is none, or CASEWORK_MODEL means no model.
        """
        from casework.durable.worker import check_models

        if self._app is None:
            app = preparation.load(self.settings)
            check_models(app, self.settings)
            self._app = app
        return self._app

    async def start(self, workers: int = 1) -> None:
        """Start everything and return when the API answers and the workers take work.

        Raises:
            StateError: another program runs a stack in this folder; says where.
            LocalStackError: a server or service does not come up; the message has its last words.
            CaseworkError: migration, the application or its manifests are refused.
        """
        app = self.find_app()
        self._take_folder()
        try:
            end_leftovers(self.home)
            self.settings = await self.servers.start(self.settings)
            self.token, self.displaced = await preparation.prepare(app, self.settings, self.tables)
            started = [self.add_worker() for _ in range(workers)]
            await self._start_api()
            for worker in started:
                await self.wait_ready(worker)
            self._write_facts()
        except BaseException:
            await self.stop()
            raise

    def add_worker(self, env: Mapping[str, str] | None = None) -> Service:
        """Start one more worker and return at once; `env` goes on top of its environment."""
        self._numbered += 1
        grace = self.settings.worker.graceful_stop_s + DRAIN_MARGIN_S
        worker = Service(
            self.home / f"worker-{self._numbered}", ["worker"], child_environment(self.settings, env), grace
        )
        worker.start()
        self.workers.append(worker)
        return worker

    def kill_worker(self, worker: Service) -> None:
        """End a worker at once with SIGKILL. It is not restarted."""
        self.workers.remove(worker)
        worker.process.kill()

    def kill_server(self, name: str) -> int:
        """End `api`, `postgres` or `temporal` at once with SIGKILL, all of its processes; its process id.

        `watch` starts it again, as after any crash.

        Raises:
            LocalStackError: it does not run here.
        """
        if name != "api":
            return self.servers.kill(name)
        if not (self.api and self.api.pid):
            raise LocalStackError("The API of this stack does not run, so it cannot be killed. Start the stack first.")
        pid = self.api.pid
        kill_family(pid)
        return pid

    async def wait_ready(self, worker: Service) -> None:
        """Wait until a worker polls the task queue.

        Raises:
            LocalStackError: it ended instead, or does not in time.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not await self.servers.is_polling(self.settings, worker.pid):
            self._require_alive(worker, deadline)
            await asyncio.sleep(POLL_SECONDS)

    async def watch(self, say: Callable[[str], None]) -> None:
        """Restart what crashes, with a growing pause, until cancelled; `say` gets a sentence for each.

        Raises:
            LocalStackError: a server does not come up again.
        """
        while True:
            for sentence in await self.servers.restart_crashed():
                say(sentence)
                self._write_facts()
            for service in [*self.workers, *([self.api] if self.api else [])]:
                if not service.pid:
                    self._revive(service, say)
            await asyncio.sleep(POLL_SECONDS)

    async def stop(self) -> None:
        """Stop everything this stack started, in order, and let the folder go. Harmless when nothing runs."""
        if not self._lock.held:
            return  # the folder, and what its files tell, is another program's
        await _end([*self.workers, *([self.api] if self.api else [])])
        self.workers, self.api = [], None
        self.servers.stop()
        (self.home / "stack.json").unlink(missing_ok=True)
        self._lock.release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _take_folder(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        if not self._lock.acquire():
            raise StateError(f"A stack already runs in {self.home}{_where(self.home)}. Use it, or stop it first.")
        (self.home / ".gitignore").write_text("*\n", encoding="ascii")
        # What a killed program left tells of servers that are gone.
        (self.home / "stack.json").unlink(missing_ok=True)

    async def _start_api(self) -> None:
        wanted = self.settings.api.port
        for _ in range(API_TRIES):
            # Where the wanted one is busy, the one that was found at the start before.
            port = wanted if is_free(wanted) else kept_port(self.home / "api.port")
            self.settings = replace(self.settings, api=replace(self.settings.api, port=port))
            env = child_environment(self.settings)
            self.api = Service(self.home / "api", ["api"], env, API_GRACE_S + DRAIN_MARGIN_S)
            self.api.start()
            try:
                return await self._wait_api(self.api)
            except LocalStackError:
                # Someone else may have taken the port between the choice and the start.
                if self.api.pid or is_free(port):
                    raise
                self.api.process.stop()
        raise LocalStackError(f"No port could be had for the API after {API_TRIES} tries. Give one with --port.")

    async def _wait_api(self, api: Service) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        # Its own word that it listens comes first: on a port lost in a race another's API would answer for ours.
        while not (api.process.has_said(LISTENING) and await preparation.is_healthy(self.api_url)):
            self._require_alive(api, deadline)
            await asyncio.sleep(POLL_SECONDS)

    def _require_alive(self, service: Service, deadline: float) -> None:
        if service.pid and time.monotonic() < deadline:
            return
        state = "is not ready in time" if service.pid else f"ended with exit code {service.exit_code}"
        raise LocalStackError(
            f"The local {service.name} {state}. Its last words ({service.log}):\n{service.process.log_tail()}"
        )

    def _revive(self, service: Service, say: Callable[[str], None]) -> None:
        noticed = service.awaits_restart
        pause = service.due_in()
        if not noticed:
            say(f"{service.name} ended (exit code {service.exit_code}), restarting in {pause:.1f} s; see {service.log}")
        if pause == 0:
            service.start()
            say(f"{service.name} was started again (process {service.pid}).")
            self._write_facts()

    def _write_facts(self) -> None:
        """Tell other commands where the stack is. Holds no secret: the local URLs name a password file."""
        facts = {"api_url": self.api_url, **self.servers.facts(), "processes": self._processes()}
        write_private(self.home / "stack.json", dumps(facts))

    def _processes(self) -> dict[str, object]:
        pids = {service.name: service.pid for service in [*self.workers, *([self.api] if self.api else [])]}
        seen = {name: look(pid) for name, pid in {**pids, **self.servers.pids()}.items() if pid}
        return {name: {"pid": it.identity.pid, "started": it.identity.started} for name, it in seen.items() if it}


async def _end(services: list[Service]) -> None:
    """Stop services side by side: all are asked, each has its grace, then it is killed."""
    for service in services:
        service.process.ask_to_stop()
    deadline = time.monotonic() + max((service.grace_s for service in services), default=0)
    while any(service.pid for service in services) and time.monotonic() < deadline:  # noqa: ASYNC110  # no event tells
        await asyncio.sleep(POLL_SECONDS)
    for service in services:
        service.process.kill()


def _where(home: Path) -> str:
    """Where the running stack is, from its own file; empty while it is still starting."""
    try:
        return f", its API is at {loads((home / 'stack.json').read_text(encoding='utf-8'))['api_url']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
