"""Named points at which a drill kills the worker, to show that it may die there. Nothing happens unless one is set.

`CASEWORK_DRILL_KILL_AT` names a point, `CASEWORK_DRILL_MARKS` a folder. A worker that reaches the point for a path it
has no mark of leaves the mark and kills itself with SIGKILL, so each step dies there exactly once.
"""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

KILL_AT = "CASEWORK_DRILL_KILL_AT"
MARKS = "CASEWORK_DRILL_MARKS"

POINTS = ("claimed", "sent", "acted", "committed", "reported")
"""After the claim; effect sent; done, not committed; committed, not reported; reported, workflow not yet told."""


def fault_point(point: str, path: str) -> None:
    """Die here if a drill says so."""
    if os.environ.get(KILL_AT) != point:
        return
    mark = Path(os.environ[MARKS]) / f"{point}-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
