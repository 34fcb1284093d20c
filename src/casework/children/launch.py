"""Run as a script between us and a child: becomes who the child shall be, then becomes the child.

    python -I -S launch.py '{"parent": 4711, "death_signal": 2, "user": [65534, 65534], "namespace": true}' COMMAND...

A program of its own, and not code between fork and exec, because only a process with one thread may enter a user
namespace, and because a fork of a program with threads must not run Python. Uses the standard library alone.

Exit codes before the command has started: 77 the identity cannot be taken or a path is out of its reach (the reason
is on stderr), 78 the parent is gone, 127 the command cannot be run.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

REFUSED = 77
ORPHANED = 78
NOT_RUN = 127
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Take the identity, ask to die with the parent, check what must be within reach, become the command."""
    wish = json.loads(arguments[0])
    try:
        _take_identity(wish)
        _require_reach(wish.get("reach", []))
    except OSError as refused:
        _leave(REFUSED, str(refused))
    # After the change of identity: the system forgets the wish when an identity changes.
    _die_with_parent(wish.get("death_signal"), wish["parent"])
    try:
        os.execv(arguments[1], arguments[1:])  # noqa: S606  # a shell is what must not come between
    except OSError as failed:
        _leave(NOT_RUN, f"{arguments[1]}: {failed.strerror}")


def _take_identity(wish: dict[str, Any]) -> None:
    if not wish.get("user"):
        return
    user, group = wish["user"]
    if wish.get("namespace"):
        _enter_namespace(user, group)
    else:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)


def _enter_namespace(user: int, group: int) -> None:
    """Be `user` inside a namespace of one user, who outside is still us: files stay ours, no rights change."""
    outer_user, outer_group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"no user namespace: {os.strerror(code)}")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {outer_user} 1")
    _write("/proc/self/gid_map", f"{group} {outer_group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _require_reach(paths: list[str]) -> None:
    for path in paths:
        if not os.access(path, os.X_OK):
            raise PermissionError(f"user {os.getuid()} cannot reach {path}")


def _die_with_parent(death_signal: int | None, parent: int) -> None:
    if death_signal and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        _leave(ORPHANED, "the parent is gone")


def _leave(code: int, message: str) -> None:
    sys.stderr.write(f"casework launch: {message}\n")
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
