"""`casework worker` as a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from casework.settings import DatabaseSettings, Secret, Settings
from tests.integration.durable.conftest import House, eventually

ROOT = Path(__file__).parents[3]


@contextmanager
def worker_process(settings: Settings, app: str, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of `app` for the settings; what it says is in `folder`. It is gone when the block is left."""
    with (folder / "worker.log").open("wb") as log:
        words = [sys.executable, "-m", "casework", "worker", "--app", app]
        env = {**os.environ, **settings.as_environ(), **environment}
        made = subprocess.Popen(words, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield made
        finally:
            made.kill()
            made.wait()


async def killed_when(
    reached: Callable[[], bool], what: str, house: House, app: str, folder: Path, **environment: str
) -> None:
    """A worker of the house that is killed, by SIGKILL, as soon as it has `reached` that place."""
    settings = replace(house.settings, database=DatabaseSettings(url=Secret(house.dsn)))
    with worker_process(settings, app, folder, **environment) as process:

        async def look() -> bool:
            assert process.poll() is None, (folder / "worker.log").read_text()
            return reached()

        await eventually(look, what)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
