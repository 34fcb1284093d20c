"""The Temporal development server on one folder.

folder/temporal.db    histories, timers and queues (SQLite), kept from start to start
folder/port           the port of the last start, taken again where it is free
folder/temporal.log   what the server says
folder/*.lock         see `casework.children`
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from casework.children.ports import HOST, kept_port
from casework.children.server import ServerProcess, StopStep
from casework.durable.local.binaries import fetch_program, find_program
from casework.errors import LocalStackError

START_TIMEOUT_S = 60.0
PORT_TRIES = 3
LONGEST_PANIC = 400
"""Lines. The server has ports of its own too, and where one was taken meanwhile it ends with a long trace."""
POLL_SECONDS = 0.05

STOP_STEPS = (StopStep(signal.SIGTERM, 10.0),)

# The server's own defaults are limits meant for clusters: with one shard they allow some 20 activities a second and let
# short timers fire a second late. WAL with NORMAL makes the file as fast as memory, and lost nothing when killed.
FLAGS = (
    *("--sqlite-pragma", "journal_mode=WAL"),
    *("--sqlite-pragma", "synchronous=NORMAL"),
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=1000"),
    *("--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"'),
    *("--dynamic-config-value", "matching.numTaskqueueReadPartitions=1"),
    *("--dynamic-config-value", "matching.numTaskqueueWritePartitions=1"),
)


class LocalTemporal:
    """A development server on `folder`, ours alone while it runs; also an async context manager.

    Start it from the main thread (on Linux the server ends with the thread that started it).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._port = 0
        # A namespace that only this folder's server has: whoever serves it is ours, and no other that took the port.
        self._mark = f"casework-{hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:12]}"
        self._server = ServerProcess(self._folder, "temporal", STOP_STEPS, marker=self._mark)

    @property
    def address(self) -> str:
        """Host and port of the frontend; valid while the server runs."""
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process id of the server while it lives."""
        return self._server.pid

    async def start(self) -> str:
        """Start the server, or do nothing where it runs, and return its address.

        What a killed program left behind is ended first (only if it is ours); open runs are there again.

        Raises:
            LocalStackError: the folder is in use, there is no server program, or it does not come up.
        """
        if not self._server.pid:
            try:
                self._server.claim()
                program = find_program() or await fetch_program(self._folder)
                await self._come_up(program)
            except BaseException:
                self._server.stop()
                raise
        return self.address

    def stop(self) -> None:
        """Stop the server and let the folder go. Harmless when it does not run."""
        self._server.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _come_up(self, program: Path) -> None:
        for _ in range(PORT_TRIES):
            self._port = kept_port(self._folder / "port")
            self._server.spawn(self._command(program), env=_environment(), cwd=self._folder)
            if await self._wait_ready():
                return
            if "address already in use" not in self._server.log_tail(LONGEST_PANIC):
                break
            self._server.claim()
        raise LocalStackError(
            f"The Temporal server in {self._folder} did not start (exit code {self._server.exit_code}). "
            f"Its last words ({self._server.log}):\n{self._last_words()}"
        )

    def _last_words(self) -> str:
        """The end of the log; where that is a trace, what the trace is of comes first."""
        lines = self._server.log_tail(LONGEST_PANIC).splitlines()
        return "\n".join([line for line in lines[:-15] if line.startswith("panic:")] + lines[-15:])

    def _command(self, program: Path) -> Sequence[str]:
        # Relative to the working folder: the server reads the name as a URL, where ?, # and % would lead elsewhere.
        database = "temporal.db"
        place = ("--ip", HOST, "--port", str(self._port), "--namespace", self._mark, "--db-filename", database)
        return (str(program), "server", "start-dev", "--headless", *place, *FLAGS)

    async def _wait_ready(self) -> bool:
        """Wait until the namespace answers; False when the server ended instead."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._server.pid and time.monotonic() < deadline:
            if await answers(self.address, self._mark):
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False


async def answers(address: str, namespace: str) -> bool:
    """Whether a Temporal server at `address` serves `namespace` now."""
    try:
        client = await Client.connect(address, namespace=namespace)
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except (RuntimeError, RPCError):
        return False
    return True


def _environment() -> dict[str, str]:
    """Our environment without the variables that tell Temporal's tools about some other server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
