"""What the tests of the local servers share: waiting, and a parent program that can be killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casework.children.identity import look

DEADLINE_S = 20.0

SERVERS = {
    "postgres": ("casework.store.local", "LocalPostgres", "server.start()"),
    "temporal": ("casework.durable.local", "LocalTemporal", "asyncio.run(server.start())"),
}

PARENT = """
import asyncio, sys, time
from pathlib import Path
from {module} import {name}
server = {name}(Path(sys.argv[1]))
{start}
print(server.pid, flush=True)
time.sleep(600)
"""


def wait_until(what: Callable[[], object], text: str) -> None:
    """Wait until `what()` holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, f"not in time: {text}"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether no such process lives."""
    return look(pid) is None


@pytest.fixture
def parent() -> Iterator[Callable[[str, Path], tuple[subprocess.Popen[str], int]]]:
    """Starts a program that runs a server; gives the program and the server's process id."""
    started = []

    def start(kind: str, folder: Path) -> tuple[subprocess.Popen[str], int]:
        module, name, begin = SERVERS[kind]
        code = PARENT.format(module=module, name=name, start=begin)
        program = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
        started.append(program)
        assert program.stdout
        return program, int(program.stdout.readline())

    yield start
    for program in started:
        program.kill()
        program.wait()
        if program.stdout:
            program.stdout.close()
