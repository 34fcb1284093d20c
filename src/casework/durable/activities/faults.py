"""Named points at which a drill kills or freezes the worker, to show that it may. Otherwise nothing happens.

`CASEWORK_DRILL_FOLDER` names a folder that the drill and its workers share. In it `plan.json` lists faults; `marks`
holds a file for each fault that has happened, so that each happens exactly once; `calls.jsonl` gets a line for each
point that is passed, which counts the acts of a worker independently of the ledger; in `received` the destination
leaves a file for each call that has arrived.
"""

from __future__ import annotations

import fnmatch
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from temporalio import activity

FOLDER = "CASEWORK_DRILL_FOLDER"

KEY = "{key}"
OVER = "over"
"""No point of a fault: an execution that lived has ended, whatever came of it."""

Point = Literal["claimed", "sent", "acted", "committed", "reported"]
POINTS: tuple[Point, ...] = ("claimed", "sent", "acted", "committed", "reported")
"""After the claim; effect sent (a transactional tool: its statements are executed); done, not committed (its ledger row
is written, its transaction open); committed, not reported; reported, before the workflow task that learns of it is
done."""
_SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}


@dataclass(frozen=True)
class Fault:
    """One kill at a point of the step whose path matches `path` (a shell pattern) in run `run`.

    The other actions kill nobody; the attempt lives on, and the engine starts a second one beside it. `mute`, at `sent`
    only: its heartbeats get lost, as in a network that is cut. `pause`: the process is frozen (SIGSTOP) until the drill
    lets it go on.
    """

    id: str
    point: Point
    path: str
    run: str
    action: Literal["kill", "mute", "pause"] = "kill"
    received: str | None = None
    """At `sent`: the file that the destination leaves for the call, where KEY stands for the step's key. None where the
    call does not go there, and the activity itself passes the point."""


@dataclass(frozen=True)
class Mark:
    """A fault that happened: to which process, at which step, when (seconds since the epoch)."""

    id: str
    pid: int
    run: str
    path: str
    at: float


@dataclass(frozen=True)
class Passed:
    """A point that a worker passed."""

    point: str
    run: str
    path: str
    pid: int
    at: float


class FaultFolder:
    """The shared folder, as drill and worker see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.received = folder / "received"
        self._plan = folder / "plan.json"
        self._marks = folder / "marks"
        self._calls = folder / "calls.jsonl"

    def prepare(self) -> None:
        """Make the folder with an empty plan."""
        for path in (self.folder, self.received, self._marks):
            path.mkdir(parents=True, exist_ok=True)
        self.plan([])

    def plan(self, faults: list[Fault]) -> None:
        """From now on these faults are due."""
        fresh = self._plan.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(fault) for fault in faults]), encoding="utf-8")
        fresh.replace(self._plan)

    def due(self, point: str, run: str, path: str) -> Fault | None:
        """The fault that is due here, if there is one that has not happened."""
        for each in json.loads(self._plan.read_text(encoding="utf-8")):
            fault = Fault(**each)
            here = fault.point == point and fault.run == run and fnmatch.fnmatchcase(path, fault.path)
            if here and not (self._marks / fault.id).exists():
                return fault
        return None

    def claim(self, fault: Fault, run: str, path: str) -> bool:
        """Mark `fault` as happening in this process; False where another was first."""
        mark = Mark(fault.id, os.getpid(), run, path, time.time())
        fresh = self._marks / f".{fault.id}.{os.getpid()}"
        fresh.write_text(json.dumps(asdict(mark)), encoding="utf-8")
        try:
            os.link(fresh, self._marks / fault.id)  # whole or not at all, and only once
        except FileExistsError:
            return False
        finally:
            fresh.unlink()
        return True

    def marks(self) -> list[Mark]:
        """The faults that have happened, the first one first."""
        found = [Mark(**json.loads(path.read_text())) for path in self._marks.iterdir() if path.name[0] != "."]
        return sorted(found, key=lambda mark: mark.at)

    def passed(self, point: str, run: str, path: str) -> None:
        """Write down that this process passed a point, in one write, so that a kill leaves whole lines."""
        line = json.dumps(asdict(Passed(point, run, path, os.getpid(), time.time()))) + "\n"
        descriptor = os.open(self._calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def calls(self) -> list[Passed]:
        """What the workers wrote down, in order."""
        if not self._calls.exists():
            return []
        return [Passed(**json.loads(line)) for line in self._calls.read_text(encoding="utf-8").splitlines()]


def fault_folder() -> FaultFolder | None:
    """The folder of the drill that this process takes part in; None outside of drills."""
    named = os.environ.get(FOLDER)
    return FaultFolder(Path(named)) if named else None


def fault_point(point: Point, path: str, run: str | None = None) -> None:
    """Die here if a drill says so; `run` is the run of the present activity unless given."""
    folder = fault_folder()
    if folder is None:
        return
    owner = run or activity.info().workflow_id or ""
    folder.passed(point, owner, path)
    fault = folder.due(point, owner, path)
    if fault is not None and fault.action in _SIGNALS:
        strike(folder, fault, owner, path)


_last_attempts: set[object] = set()
"""Activities in flight in this process that are at one of their last attempts."""
_SPARED = 2
"""How many of a step's last attempts are spared. A kill can cost two: the engine may hand the next attempt to the dead
worker's open question for work, and learns two seconds later that nobody has it."""


@contextmanager
def in_flight(attempt: int, attempts: float) -> Iterator[None]:
    """An attempt of an activity that has so many."""
    token = object()
    if attempt > max(attempts - _SPARED, 1):
        _last_attempts.add(token)
    try:
        yield
    finally:
        _last_attempts.discard(token)


def strike(folder: FaultFolder, fault: Fault, run: str, path: str) -> None:
    """Carry out a fault, unless another process has, or a step here is at one of its last attempts.

    A kill takes an attempt of everything in flight in the process. Steps have few, so a step that had bad luck often is
    spared: that a step is given up in the end is no fault of repeating, which is what a drill is about.
    """
    if not _last_attempts and folder.claim(fault, run, path):
        os.kill(os.getpid(), _SIGNALS[fault.action])
