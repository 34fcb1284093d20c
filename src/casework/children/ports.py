"""Free TCP ports on the loopback address, the same from start to start where nobody took them meanwhile."""

from __future__ import annotations

import socket
from pathlib import Path

from casework.children.files import write_private

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        # As servers do: a port whose old connections are only winding down counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def free_port(preferred: int | None = None) -> int:
    """`preferred` if it is free, else one that the system gives. Another may take it before it is used."""
    if preferred and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def kept_port(path: Path) -> int:
    """The port kept in the file `path` if it is free, else a new one, which is kept there."""
    port = free_port(_read(path))
    write_private(path, str(port))
    return port


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
