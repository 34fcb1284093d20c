"""Killing a server with all of its processes."""

from __future__ import annotations

import subprocess
import sys
import time

from casework.children.family import descendants, kill_family
from casework.children.identity import look

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_process_goes_with_those_that_it_started() -> None:
    """Also with those in sessions of their own, as PostgreSQL's are."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert descendants(parent.pid) == [child]
    kill_family(parent.pid)
    assert parent.wait(10) == -9
    deadline = time.monotonic() + 10
    while look(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert look(child) is None
    parent.stdout.close()


def test_a_process_that_is_gone_is_no_error() -> None:
    """It may have ended in the moment before."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30)
    kill_family(gone.pid)
