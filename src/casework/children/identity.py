"""Who a process id is: the same number may be another process tomorrow, the same number and start may not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from casework.children.files import write_private


@dataclass(frozen=True)
class Identity:
    """A process: its id, and when it started as the system tells it (opaque text, equal only for the same process)."""

    pid: int
    started: str


@dataclass(frozen=True)
class Seen:
    """A live process as the system shows it now; `command` are its words joined by blanks."""

    identity: Identity
    command: str


def look(pid: int) -> Seen | None:
    """The live process with this id; None where there is none, or only a dead one not yet collected."""
    if pid <= 0:
        return None
    return _look_in_proc(pid) if sys.platform == "linux" else _look_with_ps(pid)


def is_alive(identity: Identity) -> bool:
    """Whether that very process still lives."""
    seen = look(identity.pid)
    return seen is not None and seen.identity == identity


def works_in(pid: int, folder: Path) -> bool:
    """Whether the process has `folder` as its working folder. True where the system does not tell: assume the worse."""
    if sys.platform != "linux":
        return True
    try:
        return Path(f"/proc/{pid}/cwd").samefile(folder)
    except OSError:
        return False


def write_record(path: Path, identity: Identity) -> None:
    """Keep `identity` in a file, whole or not at all."""
    write_private(path, json.dumps(asdict(identity)))


def read_record(path: Path) -> Identity | None:
    """The kept identity; None where the file is missing or unreadable, since then it proves nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Identity(pid=int(found["pid"]), started=str(found["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _look_in_proc(pid: int) -> Seen | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything, so count the fields from the last one.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in {"Z", "X"}:
        return None
    command = os.fsdecode(words.rstrip(b"\0").replace(b"\0", b" "))
    return Seen(Identity(pid, f"{boot}:{fields[19]}"), command)


def _look_with_ps(pid: int) -> Seen | None:
    asked = ["ps", "-ww", "-o", "stat=,lstart=,command=", "-p", str(pid)]
    # The date in one fixed form, the command as it is: in the C locale paths beyond ASCII would come out escaped.
    plain = {"PATH": os.environ.get("PATH", os.defpath), "LC_TIME": "C", "LC_CTYPE": "en_US.UTF-8"}
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False, env=plain)  # noqa: S603  # no shell
    except OSError:
        return None
    words = answer.stdout.split(maxsplit=6)
    if len(words) < 7 or words[0].startswith("Z"):
        return None
    return Seen(Identity(pid, " ".join(words[1:6])), words[6].strip())
