"""The life of one server on one folder: claimed, healed, started, stopped.

`claim` takes the folder for this program and ends what an earlier one left behind; after it no server runs there.
`spawn` starts ours with the server's lock in its hands. `stop` asks in steps, each harder, and lets the folder go.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casework.children import launch
from casework.children.identity import Identity, look, read_record, write_record
from casework.children.locks import FileLock
from casework.errors import LocalStackError

LOG_LIMIT_BYTES = 10_000_000
LEFTOVER_GRACE_S = 5.0


@dataclass(frozen=True)
class RunAs:
    """Who the child is. `user` None: who we are. `namespace`: in a user namespace, where outside it is still us."""

    user: tuple[int, int] | None = None
    namespace: bool = False


@dataclass(frozen=True)
class StopStep:
    """Send `signal`, then wait up to `grace_s` seconds for the end."""

    signal: signal.Signals
    grace_s: float


def launcher(run_as: RunAs = RunAs(), death_signal: int | None = None, reach: Sequence[Path] = ()) -> list[str]:
    """The words to put before a command so that it runs as `run_as` and gets `death_signal` when we end (Linux).

    On Linux the signal comes when the *thread* that starts the child ends, so start children from the main thread.
    """
    wish = {
        "parent": os.getpid(),
        "death_signal": death_signal,
        "user": run_as.user,
        "namespace": run_as.namespace,
        "reach": [str(path) for path in reach],
    }
    return [sys.executable, "-I", "-S", launch.__file__, json.dumps(wish)]


def _private(path: str, flags: int) -> int:
    """Opener of a log: what a server says may hold data."""
    return os.open(path, flags, 0o600)


class ServerProcess:
    """One server program on one folder.

    Args:
        folder: Where the server's data, locks and log are; made if missing.
        name: The server's name in messages and the stem of its files.
        stop_steps: How it is asked to end, mildest first; SIGKILL follows by itself.
        marker: What its command shows, to know it again; the folder, unless given.
        death_signal: What it gets when we are killed (Linux); the first stop step's signal, unless given.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        stop_steps: Sequence[StopStep],
        *,
        marker: str | None = None,
        death_signal: signal.Signals | None = None,
    ) -> None:
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._name = name
        self._marker = marker or str(folder)
        self._death_signal = death_signal or stop_steps[0].signal
        self._steps = (*stop_steps, StopStep(signal.SIGKILL, LEFTOVER_GRACE_S))
        self._owner = FileLock(folder / "owner.lock")
        self._held = FileLock(folder / "server.lock")
        self._record = folder / "server.json"
        self._child: subprocess.Popen[bytes] | None = None
        self._claimed = False
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The server's process id while it lives."""
        return self._child.pid if self._child and self._child.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """How the server ended; None while it lives or was never started."""
        return self._child.poll() if self._child else None

    def claim(self) -> None:
        """Take the folder and see to it that no server runs there.

        Raises:
            LocalStackError: another program holds the folder, or a server that is not ours to stop.
        """
        if not self._claimed:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._owner.acquire():
                raise LocalStackError(
                    f"Another program runs {self._name} in {self.folder}. Stop that one, or use another folder."
                )
            self._claimed = True
        if not self._held.acquire():
            self._end_leftover()

    def spawn(
        self,
        command: Sequence[str],
        *,
        run_as: RunAs = RunAs(),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start the server; it holds the server's lock from its first moment. `claim` comes first."""
        self._turn_log()
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        words = [*launcher(run_as, self._death_signal), *command]
        with open(self.log, "ab", opener=_private) as log:
            self._child = subprocess.Popen(  # noqa: S603  # our own words, no shell
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ if env is None else env),
                cwd=cwd,
                pass_fds=(self._held.descriptor,),
                start_new_session=True,  # the terminal's Ctrl-C is for us; we stop children in order
            )
        seen = look(self._child.pid)
        if seen:
            write_record(self._record, seen.identity)
        self._held.release()

    def ask_to_stop(self) -> None:
        """Send the mildest stop signal and return at once, so that several servers can end side by side."""
        if self.pid and self._child:
            self._child.send_signal(self._steps[0].signal)

    def kill(self) -> None:
        """End the server at once (SIGKILL) and let the folder go."""
        if self._child:
            self._child.kill()
            self._child.wait()
        self.stop()

    def stop(self) -> None:
        """End the server and let the folder go. Harmless when nothing runs."""
        if self._child:
            for step in self._steps:
                if self._child.poll() is not None:
                    break
                self._child.send_signal(step.signal)
                self._wait(step.grace_s)
            self._child = None
        self._held.release()
        self._owner.release()
        self._claimed = False

    def has_said(self, text: str) -> bool:
        """Whether the present run of the server wrote `text`; what earlier runs wrote does not count."""
        try:
            return text.encode() in self.log.read_bytes()[self._log_start :]
        except OSError:
            return False

    def log_tail(self, lines: int = 15) -> str:
        """The last lines the server wrote, for a message."""
        try:
            text = self.log.read_bytes()[-20_000:].decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _wait(self, seconds: float) -> None:
        if self._child:
            try:
                self._child.wait(seconds)
            except subprocess.TimeoutExpired:
                return

    def _end_leftover(self) -> None:
        """A server of an earlier program still holds its lock: end it, if the record proves that it is the one."""
        # The child of a killed program gets the stop signal from the system and may be on its way out already.
        if self._held.acquire(timeout_s=1.0):
            return
        for step in self._steps:
            ours = self._leftover()
            if not ours:
                break
            os.kill(ours.pid, step.signal)
            if self._held.acquire(timeout_s=step.grace_s):
                return
        # The server itself is gone or unknown; its helpers notice that by themselves within a moment.
        if self._held.acquire(timeout_s=LEFTOVER_GRACE_S):
            return
        raise LocalStackError(
            f"A process still uses {self.folder} and is not known to be ours, so it was left alone. "
            f"Find it with 'fuser {self.folder / 'server.lock'}' (or lsof), stop it, and start again."
        )

    def _leftover(self) -> Identity | None:
        """The recorded process, if it is that very process and its command shows the marker."""
        recorded = read_record(self._record)
        seen = look(recorded.pid) if recorded else None
        if recorded and seen and seen.identity == recorded and self._marker in seen.command:
            return recorded
        return None

    def _turn_log(self) -> None:
        """Keep one old log when the present one is over the limit."""
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
