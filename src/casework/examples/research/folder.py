"""A folder that is read and never left: no `..`, no link, no device, whatever a model or a person asked for.

A file is reached from the folder's own handle, one part of its path after the other, and no part may be a link. So a
path that is checked and the file that is opened cannot be two things, also where somebody moves files meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from casework.errors import ToldError

MAX_FILE = 1024 * 1024
"""Largest file that is read, in bytes."""
MAX_FILES = 2000
"""Most files of a folder that are looked at."""
MAX_DEPTH = 12
"""Deepest folder below the root that is looked at."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a named pipe would hold up the call until somebody writes into it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class UnreadableError(ToldError):
    """A file is not there, is none that can be read, or lies outside."""


@dataclass
class Listing:
    """The files of a folder by path, in order, and what was left out, each with the reason."""

    paths: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Folder:
    """A folder, by its real path."""

    root: Path

    @classmethod
    def at(cls, root: Path, below: str = "") -> Folder:
        """The folder `below` a root; the root itself may be a link, what is below it may not.

        Raises:
            UnreadableError: there is no such folder, or it lies outside of the root.
        """
        try:
            real = root.resolve(strict=True)
        except OSError as error:
            raise UnreadableError(f"The folder {root} cannot be read: {error.strerror}. Set RESEARCH_ROOT.") from None
        parts = _parts(below) if below.strip() not in ("", ".") else ()
        with _opened(real, parts, _DIRECTORY, below or str(root)):
            return cls(real.joinpath(*parts))

    def listing(self) -> Listing:
        """All files that may be read, sorted; hidden ones are passed over in silence."""
        made = Listing()
        self._list(PurePosixPath(), made)
        return made

    def read(self, path: str) -> str:
        """The text of a file.

        Raises:
            UnreadableError: it is not there, too large, no text, or lies outside; says which.
        """
        with _opened(self.root, _parts(path), _FILE, path) as handle:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableError(f"{path!r} is no file.")
            if found.st_size > MAX_FILE:
                raise UnreadableError(f"{path!r} has {found.st_size:,} bytes; at most {MAX_FILE:,} are read.")
            with os.fdopen(os.dup(handle), "rb") as file:
                data = file.read(MAX_FILE + 1)
        return _text(data[:MAX_FILE], path)

    def _list(self, below: PurePosixPath, made: Listing) -> None:
        try:
            with os.scandir(self.root / below) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            made.left_out.append((f"{below}/", f"cannot be read: {error.strerror}"))
            return
        for entry in found:
            if not entry.name.startswith("."):
                self._take(entry, below / entry.name, made)

    def _take(self, entry: os.DirEntry[str], path: PurePosixPath, made: Listing) -> None:
        why = _odd(entry, path)
        if why is None and entry.is_dir(follow_symlinks=False):
            self._list(path, made)
        elif why is None and len(made.paths) >= MAX_FILES:
            why = f"only the first {MAX_FILES} files are looked at"
        elif why is None:
            made.paths.append(str(path))
        if why is not None:
            made.left_out.append((str(path).encode("utf-8", "replace").decode(), why))


def source_of(path: str) -> str:
    """The source that a document belongs to: its first folder, or `.` for what lies at the top."""
    parts = PurePosixPath(path).parts
    return parts[0] if len(parts) > 1 else "."


def _odd(entry: os.DirEntry[str], path: PurePosixPath) -> str | None:
    """Why an entry is left out; None where it is a file or folder like others."""
    if not entry.name.isprintable():  # half characters are not printable either
        return "its name cannot be written down"
    if entry.is_symlink():
        return "links are not followed"
    if entry.is_dir(follow_symlinks=False):
        return f"only {MAX_DEPTH} folders deep is looked" if len(path.parts) > MAX_DEPTH else None
    return None if entry.is_file(follow_symlinks=False) else "it is no file"


def _parts(path: str) -> tuple[str, ...]:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\x00" in path or not pure.parts:
        raise UnreadableError(f"{path[:200]!r} is no path below the folder. Write one without .. or a slash in front.")
    return pure.parts


@contextmanager
def _opened(root: Path, parts: tuple[str, ...], flags: int, said: str) -> Iterator[int]:
    """A handle on what lies at `parts` below the root, reached without following a link."""
    handles: list[int] = []
    try:
        try:
            handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for part in parts[:-1]:
                handles.append(os.open(part, _DIRECTORY, dir_fd=handles[-1]))
            if parts:
                handles.append(os.open(parts[-1], flags, dir_fd=handles[-1]))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UnreadableError(f"{said[:200]!r} cannot be read: {why}.") from None
        yield handles[-1]
    finally:
        for handle in handles:
            with suppress(OSError):
                os.close(handle)


def _text(data: bytes, path: str) -> str:
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeError:
        raise UnreadableError(f"{path!r} is no text in UTF-8.") from None
    if "\x00" in text:
        raise UnreadableError(f"{path!r} is no text.")
    return text.replace("\r\n", "\n")
