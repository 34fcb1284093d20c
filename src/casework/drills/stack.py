"""The local stack as drills need it, and the workers they keep on it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

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


class Crew:
    """The workers of a drill: so many stand by, and the dead are counted and replaced."""

    def __init__(self, stack: LocalStack, env: Mapping[str, str]) -> None:
        self._stack = stack
        self._env = dict(env)
        self._workers: list[Any] = []
        self.killed = 0
        """Workers that ended by SIGKILL."""

    @property
    def pids(self) -> list[int]:
        """Process ids of the live workers."""
        return [worker.pid for worker in self._workers if worker.pid]

    async def staff(self, number: int) -> None:
        """Have `number` workers that take work."""
        self.bury()
        fresh = [self._hire() for _ in range(number - len(self._workers))]
        for worker in fresh:
            await self._stack.wait_ready(worker)

    async def keep(self, number: int) -> None:
        """Replace the dead as long as this runs; cancel it to end."""
        while True:
            self.bury()
            for _ in range(number - len(self._workers)):
                self._hire()
            await asyncio.sleep(POLL_S)

    def kill_one(self) -> int:
        """SIGKILL a worker; its process id."""
        worker = self._workers.pop()
        pid = int(worker.pid)
        self._stack.kill_worker(worker)
        self.killed += 1
        return pid

    def bury(self) -> None:
        """Count and forget workers that have ended."""
        for worker in [each for each in self._workers if not each.pid]:
            self._workers.remove(worker)
            self.killed += worker.exit_code == -signal.SIGKILL
            self._stack.kill_worker(worker)

    def _hire(self) -> Any:
        worker = self._stack.add_worker(self._env)
        self._workers.append(worker)
        return worker
