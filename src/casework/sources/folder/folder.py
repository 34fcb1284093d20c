"""One folder: what is in it that was not taken yet, and what becomes of what was.

What this worker has dealt with is remembered by name and mark, so that a file which stays is not read at each poll. A
worker that starts reads all once; what had been taken is then known by its natural keys.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TypeVar

from casework.errors import BusinessError, SettingsError, StateError
from casework.sources.aside import SetAside
from casework.sources.folder.files import Bad, Content, Entity, File, Mark, Row, put_away, read
from casework.sources.folder.rows import rows_of
from casework.sources.folder.settings import FolderSettings

T = TypeVar("T")


@dataclass
class _Progress:
    """What is known of a file as it is: how many entities it has (a file is its entity 0), which were dealt with."""

    mark: Mark
    entities: int = 1
    dealt: set[int] = field(default_factory=set)
    refused: bool = False

    @property
    def ended(self) -> bool:
        return len(self.dealt) >= self.entities


class Folder:
    """Lives as long as the worker. One Monitor at a time reads it. `now` gives seconds since 1970."""

    def __init__(self, settings: FolderSettings, now: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[str, _Progress] = {}
        self._aside = SetAside(clock=now)

    async def entities(self) -> list[Entity]:
        """What is to be taken, in the order of names, as much as one poll takes.

        Raises:
            SettingsError: there is no such folder, or it may not be read.
        """
        return await self._do(self._entities)

    async def content(self, file: File) -> bytes:
        """The bytes of a file that `entities` gave.

        Raises:
            StateError: it is gone, or has been changed since; the next poll finds what is there now.
        """

        def again() -> bytes:
            with self._opened() as folder:
                found = read(folder, file.name, file.mark, self.settings.file_bytes)
            if isinstance(found, Content) and found.file.sha256 == file.sha256:
                return found.content
            raise StateError(
                f"{self._called(file.name)} is gone, or was changed while it was taken. Look for it again."
            )

        return await self._do(again)

    async def taken(self, entity: Entity) -> None:
        """Remember it; move the file if this was the last of it.

        Raises:
            SettingsError: the file cannot be moved.
        """
        await self._do(lambda: self._dealt(entity, refused=False))

    async def refused(self, entity: Entity, error: Exception) -> None:
        """Remember what is itself at fault, and move the file if this was the last of it; leave all else alone for a
        while, then it is read again.

        Raises:
            SettingsError: the file cannot be moved.
        """
        at_fault = isinstance(error, BusinessError) and not (isinstance(entity, Bad) and not entity.lasting)
        if at_fault:
            await self._do(lambda: self._dealt(entity, refused=True))
        else:
            self._aside.put(_key(entity))

    def why(self, bad: Bad) -> BusinessError:
        """The error for a file or row that cannot be taken."""
        where = f", row {bad.number}," if bad.number else ""
        return BusinessError(
            f"{self._called(bad.name)}{where} {bad.why}. Mend it and put it there again.", code="UNREADABLE"
        )

    async def _do(self, work: Callable[[], T]) -> T:
        def alone() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(alone)

    def _entities(self) -> list[Entity]:
        found: list[Entity] = []
        with self._opened() as folder:
            names = self._names(folder)
            self._known = {name: known for name, known in self._known.items() if name in names}
            for name in sorted(names):
                found += self._of(folder, name, self.settings.entities_per_poll - len(found))
                if len(found) >= self.settings.entities_per_poll:
                    break
        return found

    def _names(self, folder: int) -> set[str]:
        settings = self.settings
        own = {PurePath(each).parts[0] for each in (settings.done, settings.refused) if each}
        return {
            name
            for name in os.listdir(folder)
            if fnmatchcase(name, settings.pattern)
            and name not in own
            and not any(fnmatchcase(name.lower(), each) for each in settings.ignored)
        }

    def _of(self, folder: int, name: str, room: int) -> list[Entity]:
        """What is to be taken of one file, up to `room` entities."""
        try:
            mark = Mark.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError:
            return []  # it was moved away in this moment
        known = self._known.get(name)
        if known is not None and known.mark != mark:
            known = None
        young = self._now() - mark.changed / 1e9 < self.settings.settle_s
        if young or (known and known.ended) or self._aside.waits((name, mark, 0)):
            return []
        found = read(folder, name, mark, self.settings.file_bytes)
        if found is None:
            return []
        made = self._taken_apart(found)
        progress = known or _Progress(mark, len(made))
        self._known[name] = progress
        if not made:  # a heading without rows
            return self._without_rows(folder, name, progress)
        wanted = (each for each in made if _number(each) not in progress.dealt and not self._aside.waits(_key(each)))
        return [each for each, _ in zip(wanted, range(room), strict=False)]

    def _without_rows(self, folder: int, name: str, progress: _Progress) -> list[Entity]:
        """Nothing is to be taken, so it is done."""
        try:
            self._ended(folder, name, progress)
        except SettingsError as error:
            return [Bad(name, progress.mark, 0, f"has no rows, and is in the way: {error}", lasting=False)]
        return []

    def _taken_apart(self, found: Content | Bad) -> list[Entity]:
        if isinstance(found, Bad):
            return [found]
        if not (self.settings.rows and found.file.name.lower().endswith(".csv")):
            return [found.file]
        rows = rows_of(found, self.settings)
        return [rows] if isinstance(rows, Bad) else list(rows)

    def _dealt(self, entity: Entity, *, refused: bool) -> None:
        self._aside.forget(_key(entity))
        name, mark = _place(entity)
        progress = self._known.get(name)
        if progress is None or progress.mark != mark:
            return  # the file is another by now
        progress.dealt.add(_number(entity))
        progress.refused |= refused
        if progress.ended:
            try:
                with self._opened() as folder:
                    self._ended(folder, name, progress)
            except SettingsError:
                progress.dealt.discard(_number(entity))  # found again after a while, known, and moved then
                self._aside.put(_key(entity))
                raise

    def _ended(self, folder: int, name: str, progress: _Progress) -> None:
        field = "refused" if progress.refused else "done"
        target = self.settings.refused if progress.refused else self.settings.done
        if target is None:
            return
        try:
            put_away(folder, name, progress.mark, str(Path(self.settings.path) / target))
        except OSError as error:
            raise SettingsError(
                f"{field} is {target!r}, where {self._called(name)} cannot be moved ({error.strerror}). Name a folder "
                "on the same disk into which the worker may write.",
                field=field,
            ) from None

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            folder = os.open(self.settings.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise SettingsError(
                f"path is {self.settings.path!r}, which cannot be read as a folder ({error.strerror}). Make it, or "
                "grant the worker the right to read it.",
                field="path",
            ) from None
        try:
            yield folder
        finally:
            os.close(folder)

    def _called(self, name: str) -> str:
        return f"file {name!r} in {self.settings.path!r}"


def _place(entity: Entity) -> tuple[str, Mark]:
    file = entity.file if isinstance(entity, Row) else entity
    return file.name, file.mark


def _number(entity: Entity) -> int:
    return 0 if isinstance(entity, File) else entity.number


def _key(entity: Entity) -> tuple[str, Mark, int]:
    return (*_place(entity), _number(entity))
