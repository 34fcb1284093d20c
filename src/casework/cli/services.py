"""Workers and the API as child processes of the local stack."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from casework.children.server import ServerProcess, StopStep
from casework.settings import Settings
from casework.settings.whole import RESERVED

DRAIN_MARGIN_S = 5.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STEADY_S = 60.0


class Service:
    """One `casework` process in a folder of its own: started, restarted with a growing pause, stopped.

    Args:
        folder: For its log and locks; a process that a killed program left there is ended first.
        words: The command after `casework`, such as `["worker"]`.
        env: The child's whole environment.
        grace_s: Seconds it may take to end after SIGTERM.
    """

    def __init__(self, folder: Path, words: Sequence[str], env: Mapping[str, str], grace_s: float) -> None:
        self.name = folder.name
        self.grace_s = grace_s
        self._words = words
        self._env = env
        # The program is made to be killed; where its parent was, it must not work on beside the next stack.
        self.process = ServerProcess(
            folder, words[0], [StopStep(signal.SIGTERM, grace_s)], marker="casework", death_signal=signal.SIGKILL
        )
        self._pause_s = FIRST_PAUSE_S
        self._started_at = 0.0
        self._due_at: float | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it lives."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it lives. Negative: the signal that ended it."""
        return self.process.exit_code

    @property
    def log(self) -> Path:
        """The file with what it says."""
        return self.process.log

    def start(self) -> None:
        """Start the process.

        Raises:
            LocalStackError: another program holds its folder.
        """
        self.process.claim()
        self.process.spawn([sys.executable, "-m", "casework", *self._words], env=self._env)
        self._started_at = time.monotonic()
        self._due_at = None

    def due_in(self) -> float:
        """Seconds to wait before a restart, decided once for each end; the pause doubles until a run was steady."""
        now = time.monotonic()
        if self._due_at is None:
            if now - self._started_at > STEADY_S:
                self._pause_s = FIRST_PAUSE_S
            self._due_at = now + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return max(0.0, self._due_at - now)

    @property
    def awaits_restart(self) -> bool:
        """Whether its end has been noticed and a restart is due."""
        return self._due_at is not None


def child_environment(settings: Settings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment with exactly the given settings in it, and `extra` on top."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CASEWORK_", "TEMPORAL_")) or name.startswith(RESERVED)
    }
    return {**kept, **settings.as_environ(), **(extra or {})}


def end_leftovers(home: Path) -> None:
    """End the services that a killed program left running in `home`, where the system did not.

    Raises:
        LocalStackError: one of the folders is held by another program.
    """
    for folder in [home / "api", *sorted(home.glob("worker-*"))]:
        if folder.is_dir():
            left = Service(folder, [folder.name.partition("-")[0]], {}, grace_s=DRAIN_MARGIN_S).process
            left.claim()
            left.stop()
