"""`casework demo` on a terminal asks the person there, and Ctrl-C stops everything."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.conftest import APP, ROOT, clean_environment

DEADLINE_S = 150.0
COMMAND = [sys.executable, "-m", "casework", "demo", "--app", APP]


class Terminal:
    """A program on a pseudo-terminal: what it printed so far, and what is typed."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.text = ""
        self._read_to = 0
        self._deadline = time.monotonic() + DEADLINE_S
        self._fd, slave = pty.openpty()
        self.child = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=ROOT, start_new_session=True
        )
        os.close(slave)

    def wait_for(self, words: str) -> None:
        """Read until it prints `words`, after where the last wait ended."""
        while words not in self.text[self._read_to :]:
            assert time.monotonic() < self._deadline, f"{words!r} does not come:\n{self.text}"
            assert self._more(), f"it ended before {words!r}:\n{self.text}"
        self._read_to = self.text.index(words, self._read_to) + len(words)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._fd, f"{line}\n".encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._more():
            assert time.monotonic() < self._deadline, self.text
        os.close(self._fd)
        return self.child.wait(30)

    def _more(self) -> bool:
        try:
            read = os.read(self._fd, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.text += read.decode(errors="replace")
        return bool(read)


@pytest.mark.timeout(200)
def test_a_person_decides_at_the_terminal(tmp_path: Path) -> None:
    """DA-13, DA-37. The case is shown, a wrong answer is told and asked again, more_info leads to turn 2."""
    terminal = Terminal(COMMAND, clean_environment(TMPDIR=str(tmp_path), TERM="xterm", COLUMNS="200"))
    terminal.wait_for("Turn 1. The agent recommends: refer")
    terminal.wait_for("automatic_approval_ratio")
    for prompt, answer in (
        ("Your decision", "perhaps"),
        ("perhaps is not one of approve, reject, more_info.", None),
        ("Your decision", "more-info"),
        ("Your reason", ""),
        ("A reason is needed here", None),
        ("Your reason", "Is the car loan paid off?"),
        ("Turn 2. The agent recommends", None),
        ("Your decision", "reject"),
        ("Your reason (may be empty)", ""),
    ):
        terminal.wait_for(prompt)
        if answer is not None:
            terminal.type(answer)
    assert terminal.end() == 0, terminal.text
    assert "The run ended as you decided  (COMPLETED, declined)" in terminal.text
    assert "Is the car loan paid off?" in terminal.text
    assert not list(tmp_path.glob("casework-demo-*"))


@pytest.mark.timeout(200)
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    """Exit code 130, no folder and no process are left."""
    terminal = Terminal(COMMAND, clean_environment(TMPDIR=str(tmp_path)))
    terminal.wait_for("borderline: run")
    assert processes_of(tmp_path)
    terminal.child.send_signal(signal.SIGINT)
    assert terminal.end() == 130, terminal.text
    assert "Interrupted" in terminal.text
    assert not processes_of(tmp_path)
    assert not list(tmp_path.glob("casework-demo-*"))


def processes_of(folder: Path) -> list[str]:
    """The live processes that have `folder` in their environment or on their command line."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            seen = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in seen:
            found.append(process.name)
    return found
