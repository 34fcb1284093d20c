"""Where large contents go: a Transaction's data names them, and does not hold them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from casework.errors import NotFoundError, SettingsError

_REFERENCE = re.compile(r"sha256:([0-9a-f]{64})")


class Attachments(Protocol):
    """Keeps contents. To keep the same again is no second one, so that a repeated entity leaves nothing behind."""

    async def keep(self, name: str, media_type: str, content: bytes) -> str:
        """Keep `content`, which its source calls `name`; gives the reference by which it is found."""

    async def read(self, reference: str) -> bytes:
        """What was kept under `reference`."""


@dataclass(frozen=True, slots=True)
class FolderAttachments:
    """Contents as files, each named by its SHA-256, in a folder that all workers see. Files are written whole or not at
    all, and never changed. Name and media type are in the Transaction's data, beside the reference.

    Raises:
        SettingsError: `path` is no folder, and none can be made of it.
    """

    path: str

    async def keep(self, name: str, media_type: str, content: bytes) -> str:  # noqa: ARG002 - for keepers that hold them
        """Write `content`, unless it is there; gives `sha256:` and its digits.

        Raises:
            OSError: it cannot be written: the disk is full, or the folder may not be written to.
        """
        return await asyncio.to_thread(self._kept, content)

    async def read(self, reference: str) -> bytes:
        """What was kept.

        Raises:
            NotFoundError: the reference is none of this folder's, or its file is gone.
        """
        try:
            return await asyncio.to_thread(self.file(reference).read_bytes)
        except FileNotFoundError:
            raise NotFoundError(f"Attachment {reference} is not in {self.path!r}. Was its file removed?") from None

    def file(self, reference: str) -> Path:
        """The file of a reference, which may be absent.

        Raises:
            NotFoundError: it is no reference of this kind.
        """
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            raise NotFoundError(f"Attachment {reference[:100]!r} is no reference like sha256:1f0a... with 64 digits.")
        return self._place(found[1])

    def _place(self, digest: str) -> Path:
        return Path(self.path) / digest[:2] / digest

    def _kept(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self._write(digest, content)
        return f"sha256:{digest}"

    def _write(self, digest: str, content: bytes) -> None:
        target = self._place(digest)
        if target.exists():
            return
        self._make(target.parent)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a Transaction that names it must not be there without it
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
        self._settle(target.parent)

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise SettingsError(
                f"path is {self.path!r}, which is no folder ({error.strerror}). Name a folder for attachments.",
                field="path",
            ) from None

    def _settle(self, folder: Path) -> None:
        """Have the folder's own entry on the disk too."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
