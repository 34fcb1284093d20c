"""An embedded PostgreSQL on one folder.

    folder/data           the cluster; appears by one rename, so a kill during its making leaves nothing half made
    folder/password       the superuser's password, mode 0600
    folder/pgpass         the same as client libraries read it, mode 0600, so that the URL needs no password
    folder/port           the port of the last start, taken again where it is free
    folder/postgres.log   what the server says
    folder/*.lock         see `casework.children`

The server listens on 127.0.0.1 alone, has no Unix socket, and asks for the password from its first start on.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from casework.children.files import write_private
from casework.children.identity import look, works_in
from casework.children.ports import HOST, kept_port
from casework.children.server import RunAs, ServerProcess, StopStep, launcher
from casework.errors import LocalStackError
from casework.store.local.binaries import binaries, run_as_for

SUPERUSER = "casework"
DATABASE = "casework"
START_TIMEOUT_S = 60.0
PORT_TRIES = 3
POLL_SECONDS = 0.02

# SIGINT is PostgreSQL's fast stop (open transactions roll back), SIGQUIT its immediate one (recovers at next start).
STOP_STEPS = (StopStep(signal.SIGINT, 15.0), StopStep(signal.SIGQUIT, 5.0))

OPTIONS = {
    "listen_addresses": HOST,
    # A socket's path is limited to about 100 bytes and its folder would need rights of its own; TCP needs neither.
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class LocalPostgres:
    """An embedded server on `folder`, ours alone while it runs; also a context manager that starts and stops it.

    Start it from the main thread (on Linux the server ends with the thread that started it).

    Args:
        folder: Made if missing; any path, blanks and letters beyond ASCII included.
        options: Server options over our own, such as `{"fsync": "off"}` for a test's throw-away data.
    """

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        self._folder = folder.absolute()
        self._options = {**OPTIONS, **(options or {})}
        self._server = ServerProcess(self._folder, "postgres", STOP_STEPS)
        self._run_as = RunAs()
        self._port = 0

    @property
    def dsn(self) -> str:
        """The superuser's URL of the database `casework`; valid while the server runs.

        It holds no secret: it names the password's file, so it can be written down and shown.
        """
        place = quote(str(self._folder / "pgpass"), safe="/")
        return f"postgresql://{SUPERUSER}@{HOST}:{self._port}/{DATABASE}?passfile={place}"

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1; 0 before the first start."""
        return self._port

    @property
    def pid(self) -> int | None:
        """The process id of the server while it lives."""
        return self._server.pid

    def start(self) -> str:
        """Start the server, or do nothing where it runs, and return the superuser's URL.

        What a killed program left behind is ended first (only if it is ours), then the data recovers by itself.

        Raises:
            LocalStackError: the folder is in use, the wheel is missing, or the server does not come up.
        """
        if not self._server.pid:
            try:
                self._server.claim()
                self._run_as = run_as_for(self._folder)
                self._make_cluster()
                self._come_up()
            except BaseException:
                self._server.stop()
                raise
        return self.dsn

    def stop(self) -> None:
        """Stop the server and let the folder go. Harmless when it does not run."""
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _make_cluster(self) -> None:
        if self._data.exists():
            self._write_passfile()
            return
        fresh = self._folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        password = self._folder / "password"
        write_private(password, secrets.token_urlsafe(24))
        if self._run_as.user and not self._run_as.namespace:
            os.chown(password, *self._run_as.user)
        self._run(
            "initdb", "--pgdata", str(fresh), "--username", SUPERUSER, "--pwfile", str(password),
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
            "--locale=C", "--no-instructions",
        )  # fmt: skip
        # Made in single-user mode, so that no client library is needed before the server is up.
        self._run("postgres", "--single", "-D", str(fresh), "postgres", given=f"CREATE DATABASE {DATABASE};\n")
        fresh.rename(self._data)
        self._write_passfile()

    def _write_passfile(self) -> None:
        """The password's alphabet needs no escapes here."""
        password = (self._folder / "password").read_text(encoding="ascii").strip()
        write_private(self._folder / "pgpass", f"{HOST}:*:*:{SUPERUSER}:{password}\n")

    def _run(self, program: str, *arguments: str, given: str = "") -> None:
        words = [*launcher(self._run_as, signal.SIGKILL), str(binaries() / program), *arguments]
        done = subprocess.run(  # noqa: S603  # our own words, no shell
            words, input=given, capture_output=True, text=True, check=False, env=_environment()
        )
        if done.returncode != 0:
            raise LocalStackError(
                f"'{program}' failed in {self._folder} (exit code {done.returncode}): {done.stderr.strip()[-2000:]}"
            )

    def _come_up(self) -> None:
        for _ in range(PORT_TRIES):
            self._port = kept_port(self._folder / "port")
            # Nothing of ours runs (we hold the server's lock), so a file left by a kill names no one of concern.
            self._refuse_foreign_server()
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            self._server.spawn(self._command(), run_as=self._run_as, env=_environment())
            if self._wait_ready():
                return
            tail = self._server.log_tail()
            if "could not bind" not in tail:
                break
            self._server.claim()
        raise LocalStackError(
            f"PostgreSQL in {self._folder} did not start (exit code {self._server.exit_code}). "
            f"Its last words ({self._server.log}):\n{self._server.log_tail()}"
        )

    def _command(self) -> Sequence[str]:
        words = [str(binaries() / "postgres"), "-D", str(self._data), "-p", str(self._port)]
        for name, value in self._options.items():
            words += ["-c", f"{name}={value}"]
        return words

    def _wait_ready(self) -> bool:
        """Wait for the server to say so in its own file; False when it ended instead."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._server.pid and time.monotonic() < deadline:
            if _status(self._data) == (self._server.pid, "ready"):
                return True
            time.sleep(POLL_SECONDS)
        return False

    def _refuse_foreign_server(self) -> None:
        """A server started by hand on our data holds no lock of ours; it must not get a second beside it."""
        pid, _ = _status(self._data)
        seen = look(pid)
        if seen and "postgres" in seen.command and works_in(pid, self._data):
            raise LocalStackError(
                f"A PostgreSQL server that was not started by this program (process {pid}) uses {self._data}. "
                "Stop it, for example with 'pg_ctl stop', and start again."
            )


def _status(data: Path) -> tuple[int, str]:
    """The process id and the status that the server wrote into its `postmaster.pid`; (0, "") where there is none."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (OSError, ValueError, IndexError):
        return 0, ""


def _environment() -> dict[str, str]:
    """Our environment without what would steer PostgreSQL elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
