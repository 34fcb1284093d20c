"""A process and those that it has started: a server that is killed as by a machine that dies goes with all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


def kill_family(pid: int) -> None:
    """SIGKILL for the process and all below it, itself first, so that it starts none anew."""
    below = descendants(pid)  # asked while it lives: orphans belong to another
    for each in (pid, *below):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The live processes below `pid`, children before grandchildren; empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    for child, parent in _in_proc() if sys.platform == "linux" else _with_ps():
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, ()))
    for each in found:  # grows while it is walked
        found += children.get(each, ())
    return found


def _in_proc() -> list[tuple[int, int]]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            text = stat.read_text(encoding="utf-8", errors="replace")
            # The program's name stands in parentheses and may hold anything, so count from the last one.
            found.append((int(stat.parent.name), int(text.rpartition(")")[2].split()[1])))
    return found


def _with_ps() -> list[tuple[int, int]]:
    answer = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False)  # noqa: S607  # the system's own
    pairs = (line.split() for line in answer.stdout.splitlines())
    return [(int(child), int(parent)) for child, parent in pairs]
