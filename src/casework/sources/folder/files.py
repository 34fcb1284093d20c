"""Files and rows as they come from a folder, and the reading of one file: whole, of this folder, and not too large."""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link is not followed, and a pipe does not hold the reader."""


class Mark(NamedTuple):
    """By which a file is known to be the same and unchanged; times in nanoseconds."""

    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> Mark:
        """The mark of a file as it is now."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def same_content(self, other: Mark) -> bool:
        """Whether it is the same file with the same content; a renamed one may have changed otherwise."""
        return self[:3] == other[:3]


@dataclass(frozen=True, slots=True)
class File:
    """A whole file. `size` is in bytes, `sha256` of its content; `name` is without a folder."""

    name: str
    mark: Mark
    sha256: str
    media_type: str

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.mark.size


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a CSV file: its number, from 1 without the heading, and its values by their headings."""

    file: File
    number: int
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bad:
    """A file, or a row of it (`number`), that cannot be taken, and why. `lasting` where no waiting would mend it."""

    name: str
    mark: Mark
    number: int
    why: str
    lasting: bool = True


Entity = File | Row | Bad


class Content(NamedTuple):
    """A file and its bytes."""

    file: File
    content: bytes


def read(folder: int, name: str, known: Mark, limit: int) -> Content | Bad | None:
    """The file `name` in the open folder, if it is still as `known`; None where it is gone or being written."""
    try:
        handle = os.open(name, _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        link = error.errno == errno.ELOOP
        why = "is a symbolic link, which is not followed" if link else f"cannot be opened ({error.strerror})"
        return Bad(name, known, 0, why, lasting=link)
    try:
        found = _content(handle, name, known, limit)
    except OSError as error:
        return Bad(name, known, 0, f"cannot be read ({error.strerror})", lasting=False)
    finally:
        os.close(handle)
    if not isinstance(found, bytes):
        return found
    media = "message/rfc822" if name.lower().endswith(".eml") else mimetypes.guess_type(name)[0]
    digest = hashlib.sha256(found).hexdigest()
    return Content(File(name, known, digest, media or "application/octet-stream"), found)


def _content(handle: int, name: str, known: Mark, limit: int) -> bytes | Bad | None:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
        return Bad(name, known, 0, f"is {what}", lasting=False)
    if found.st_size > limit:
        return Bad(name, known, 0, f"has {found.st_size:,} bytes, over the limit of {limit:,}")
    content = _all(handle, limit)
    whole = Mark.of(os.fstat(handle)) == known and len(content) == known.size
    return content if whole else None


def _all(handle: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size <= limit and (piece := os.read(handle, 1024 * 1024)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def put_away(folder: int, name: str, known: Mark, target: str) -> None:
    """Move the file into the folder `target` under a name that is free; nothing where it is gone or another now.

    Raises:
        OSError: it cannot be moved there.
    """
    os.makedirs(target, exist_ok=True)
    try:
        if not Mark.of(os.stat(name, dir_fd=folder, follow_symlinks=False)).same_content(known):
            return
        stem, ending = os.path.splitext(name)
        free, number = name, 2
        while os.path.lexists(os.path.join(target, free)):
            free, number = f"{stem}~{number}{ending}", number + 1
        os.rename(name, os.path.join(target, free), src_dir_fd=folder)
    except FileNotFoundError:
        return
