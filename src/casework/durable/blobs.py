"""Where large values of histories are kept: the port, and a folder as its adapter (`object_blobs` has another).

A blob never changes, and its name tells its content; the first part of the name tells whose it is, so that it can go
when the history that names it has gone. Here are bytes alone: what they mean, and which, is `payloads`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import time
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote
from uuid import uuid4

UNOWNED = "unowned"
"""The owner of values that belong to no Temporal workflow."""
OWNER_LIMIT = 200
"""Characters of an owner's name in the store; a longer one is hashed."""
_NAME = re.compile(r"[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*/[0-9a-f]{64}")


class Blobs(Protocol):
    """A store of blobs. Names are `<owner>/<64 hexadecimal digits>`. Trouble is an OSError."""

    async def put(self, name: str, data: bytes) -> None:
        """Keep `data`; returns when it is durable. One that is there already counts as new."""

    async def has(self, name: str) -> bool:
        """Whether it is there; if so, it counts as new."""

    async def get(self, name: str) -> bytes | None:
        """The data, or None."""

    async def owners(self, unused_s: float) -> list[str]:
        """Owners that have put nothing for so many seconds."""

    async def remove(self, owner: str) -> None:
        """Remove all blobs of an owner."""


class FolderBlobs:
    """Blobs as files, one folder for each owner."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def put(self, name: str, data: bytes) -> None:
        """As the port says."""
        await asyncio.to_thread(self._put, name, data)

    async def has(self, name: str) -> bool:
        """As the port says."""
        return await asyncio.to_thread(self._touched, self._path(name))

    async def get(self, name: str) -> bytes | None:
        """As the port says."""
        return await asyncio.to_thread(self._get, name)

    async def owners(self, unused_s: float) -> list[str]:
        """As the port says."""
        return await asyncio.to_thread(self._owners, time.time() - unused_s)

    async def remove(self, owner: str) -> None:
        """As the port says."""
        await asyncio.to_thread(shutil.rmtree, self.folder / folder_of(owner), ignore_errors=True)

    def _put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        if self._touched(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = path.with_name(f".{uuid4().hex}")
        try:
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            made.replace(path)
        finally:
            made.unlink(missing_ok=True)

    def _touched(self, path: Path) -> bool:
        try:
            os.utime(path)
            os.utime(path.parent)
        except FileNotFoundError:
            return False
        return True

    def _get(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def _owners(self, before: float) -> list[str]:
        try:
            found = [(entry.name, entry.stat().st_mtime) for entry in os.scandir(self.folder) if entry.is_dir()]
        except FileNotFoundError:
            return []
        return sorted(unquote(name) for name, at in found if at < before)

    def _path(self, name: str) -> Path:
        return self.folder.joinpath(*parts_of_name(name))


def parts_of_name(name: str) -> tuple[str, str]:
    """The owner's part of a blob's name, and the digits.

    Raises:
        OSError: it is no name of a blob.
    """
    if _NAME.fullmatch(name) is None:
        raise OSError(f"{name!r:.300} is no name of a blob")
    owner, _, digits = name.partition("/")
    return owner, digits


def folder_of(owner: str) -> str:
    """An owner as the first part of names: a Temporal workflow id can be any text."""
    made = quote(owner, safe="")
    if len(made) > OWNER_LIMIT or made.startswith("."):
        return f"~{hashlib.sha256(owner.encode()).hexdigest()}"
    return made
