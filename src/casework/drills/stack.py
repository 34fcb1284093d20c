"""The local stack as drills need it, and the workers they keep on it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from casework.errors import LocalStackError
from casework.settings import Settings

POLL_S = 0.1


class LocalStack(Protocol):
    """PostgreSQL, Temporal and the API on one folder, and workers that come and go. A worker has `pid`, `exit_code`."""

    home: Path
    settings: Settings
    token: str

    @property
    def api_url(self) -> str:
        """Where the API answers."""
        ...

    @property
    def admin_dsn(self) -> str:
        """The database's URL as its owner."""
        ...

    async def start(self, workers: int = 1) -> None:
        """Start everything; with data of an earlier start where there is some."""
        ...

    async def stop(self) -> None:
        """Stop everything."""
        ...

    def add_worker(self, env: Mapping[str, str] | None = None) -> Any:
        """Start one more worker and return at once."""
        ...

    async def wait_ready(self, worker: Any) -> None:
        """Wait until a worker takes work."""
        ...

    def kill_worker(self, worker: Any) -> None:
        """End a worker with SIGKILL; one that is dead is only forgotten."""
        ...

    def kill_server(self, name: str) -> int:
        """End `api`, `postgres` or `temporal` with SIGKILL, all of its processes; its process id."""
        ...

    async def watch(self, say: Callable[[str], None]) -> None:
        """Start again what has ended, until cancelled; `say` gets a sentence for each."""
        ...


@dataclass
class Service:
    """When a worker took work, from and to, in seconds since the epoch; None: not yet."""

    pid: int
    ready: float | None = None
    gone: float | None = None

    def covers(self, start: float, end: float) -> bool:
        """Whether it took work all the time between the two."""
        return self.ready is not None and self.ready <= start and (self.gone is None or self.gone >= end)


class Crew:
    """The workers of a drill: so many stand by, and the dead are counted and replaced."""

    def __init__(self, stack: LocalStack, env: Mapping[str, str]) -> None:
        self._stack = stack
        self._env = dict(env)
        self._workers: list[tuple[Any, Service]] = []
        self._looking: set[asyncio.Task[None]] = set()
        self.served: list[Service] = []
        """Every worker there was."""
        self.killed = 0
        """Workers that ended by SIGKILL."""
        self.quit: list[str] = []
        """Workers that took work and ended by themselves: each with its exit code."""

    @property
    def pids(self) -> list[int]:
        """Process ids of the live workers."""
        return [worker.pid for worker, _ in self._workers if worker.pid]

    async def staff(self, number: int) -> None:
        """Have `number` workers that take work."""
        self.bury()
        for worker, service in [self._hire() for _ in range(number - len(self._workers))]:
            await self._stack.wait_ready(worker)
            service.ready = time.time()

    async def keep(self, number: int) -> None:
        """Replace the dead as long as this runs; cancel it to end."""
        while True:
            self.bury()
            for _ in range(number - len(self._workers)):
                looking = asyncio.create_task(self._look(*self._hire()))
                self._looking.add(looking)
                looking.add_done_callback(self._looking.discard)
            await asyncio.sleep(POLL_S)

    def kill_one(self) -> int:
        """SIGKILL a worker; its process id."""
        worker, service = self._workers.pop()
        self._stack.kill_worker(worker)
        service.gone = time.time()
        self.killed += 1
        return service.pid

    def kill_ready(self) -> int | None:
        """SIGKILL the worker that has taken work for the longest time; None while no second one takes work."""
        ready = [each for each in self._workers if each[0].pid and each[1].ready is not None]
        if len(ready) < 2:
            return None
        oldest = min(ready, key=lambda each: each[1].ready or 0)
        self._workers.append(self._workers.pop(self._workers.index(oldest)))
        return self.kill_one()

    def bury(self) -> None:
        """Count and forget workers that have ended."""
        for worker, service in [each for each in self._workers if not each[0].pid]:
            self._workers.remove((worker, service))
            self.killed += worker.exit_code == -signal.SIGKILL
            if service.ready is not None and worker.exit_code != -signal.SIGKILL:
                self.quit.append(f"{service.pid} (exit code {worker.exit_code})")
            service.gone = time.time()
            self._stack.kill_worker(worker)

    def stood_by(self, pid: int, start: float, end: float) -> bool:
        """Whether a worker other than `pid` took work all the time between the two."""
        return any(each.pid != pid and each.covers(start, end) for each in self.served)

    def _hire(self) -> tuple[Any, Service]:
        worker = self._stack.add_worker(self._env)
        made = (worker, Service(int(worker.pid or 0)))
        self._workers.append(made)
        self.served.append(made[1])
        return made

    async def _look(self, worker: Any, service: Service) -> None:
        """Note when a worker takes work. One that ends before is buried by others."""
        try:
            await self._stack.wait_ready(worker)
        except LocalStackError:
            return
        service.ready = time.time()
