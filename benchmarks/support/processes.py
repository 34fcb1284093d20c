"""What a process uses, from Linux' `/proc`: processor time and memory."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def cpu_seconds(*pids: int) -> float:
    """Processor time that these processes have used so far, in user mode and in the kernel."""
    return sum(_ticks(pid) for pid in pids) / _TICKS


def _ticks(pid: int) -> int:
    # The name of the program stands in brackets and may hold blanks; utime and stime are the 12th and 13th after it.
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


def pss_mb(*pids: int) -> float:
    """Memory of these processes in MB (10^6 bytes): their own, and their share of what they share with others."""
    return sum(_pss_kb(pid) for pid in pids) * 1024 / 1e6


def _pss_kb(pid: int) -> int:
    lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found = [pid]
    for child in _children(pid):
        found.extend(family(child))
    return found


def _children(pid: int) -> list[int]:
    made: list[int] = []
    for task in (_PROC / str(pid) / "task").iterdir():
        made.extend(int(each) for each in (task / "children").read_text().split())
    return made
