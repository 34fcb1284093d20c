"""A lock on a file that the system frees when its last holder is gone, however it went."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

POLL_SECONDS = 0.02


class FileLock:
    """An advisory lock (flock). A child that inherits the descriptor holds it too, until it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether we hold the lock."""
        return self._descriptor is not None

    @property
    def descriptor(self) -> int:
        """The open file, to be handed to a child.

        Raises:
            RuntimeError: the lock is not held.
        """
        if self._descriptor is None:
            raise RuntimeError(f"The lock {self._path} is not held.")
        return self._descriptor

    def acquire(self, timeout_s: float = 0) -> bool:
        """Take the lock, trying for `timeout_s` seconds. False when someone else holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return False
            time.sleep(POLL_SECONDS)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let go of our own hold; a child that inherited it still holds it. Harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
