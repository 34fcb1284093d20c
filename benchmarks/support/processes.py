"""What processes use, from Linux' `/proc`: processor time and memory. One that has ended uses nothing."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def cpu_seconds(*pids: int) -> float:
    """Processor time of these processes and of children of theirs that have ended, in user mode and in the kernel."""
    return sum(_ticks(pid) for pid in pids) / _TICKS


def _ticks(pid: int) -> int:
    # The program's name stands in brackets and may hold blanks. The 12th to 15th field after it are utime, stime and
    # the same of children that have ended.
    after_name = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return sum(int(field) for field in after_name[11:15])


def pss_mb(*pids: int) -> float:
    """Memory of these processes in MB (10^6 bytes): their own, and their share of what they share with others."""
    return sum(_pss_kb(pid) for pid in pids) * 1024 / 1e6


def _pss_kb(pid: int) -> int:
    lines = _read(_PROC / str(pid) / "smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    return [pid, *(member for child in _children(pid) for member in family(child))]


def _children(pid: int) -> list[int]:
    tasks = _PROC / str(pid) / "task"
    try:
        names = os.listdir(tasks)
    except FileNotFoundError:
        return []
    return [int(each) for name in names for each in _read(tasks / name / "children").split()]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
