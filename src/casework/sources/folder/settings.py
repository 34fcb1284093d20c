"""What is set for a folder of files."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from casework.errors import SettingsError
from casework.sources.mail import MailLimits

TEMPORARY = (
    ".*",
    "~*",
    "*~",
    "*.tmp",
    "*.temp",
    "*.part",
    "*.partial",
    "*.filepart",
    "*.crdownload",
    "*.swp",
    "*.lock",
)
"""Names of files that somebody is still writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSettings:
    """Where files are, which of them, and what becomes of those that are taken.

    Raises:
        SettingsError: a field has no valid value.
    """

    path: str
    pattern: str = "*"
    """Which names; of folders within it nothing is read."""
    ignored: tuple[str, ...] = TEMPORARY
    """Which names not, as patterns."""
    settle_s: float = 5.0
    """A file is whole when nothing has changed it for so many seconds, by this machine's clock, which must agree with
    that of a file server. Who pauses for longer while writing writes under an ignored name, and renames."""
    done: str | None = None
    """The folder into which files go whose Transactions are kept; relative to `path`, on the same disk. None: they
    stay, and are known again by name and content."""
    refused: str | None = None
    """The folder for files that are at fault themselves, in whole or in part; as `done`. None: they stay."""
    rows: bool = False
    """Whether each row of a `.csv` file is a Transaction of its own."""
    delimiter: str = ","
    encoding: str = "utf-8-sig"
    """Of CSV files; this one takes UTF-8 with and without a mark at its beginning."""
    name: str = "file"
    """What natural keys begin with. Two folders that may hold the same file need two names, if both are to count."""
    entities_per_poll: int = 1000
    file_bytes: int = 25 * 1024 * 1024
    """A larger file is refused."""
    limits: MailLimits = field(default_factory=MailLimits)
    """Of `.eml` files."""

    def __post_init__(self) -> None:
        for name in ("path", "pattern", "name"):
            if not getattr(self, name).strip():
                raise SettingsError(f"{name} is blank. Give one.", field=name)
        if "/" in self.pattern:
            raise SettingsError(
                f"pattern is {self.pattern!r}. Give names alone, and another Monitor for another folder.",
                field="pattern",
            )
        for name in ("entities_per_poll", "file_bytes"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}. Give a number from 1.", field=name)
        if not self.settle_s >= 0:
            raise SettingsError(f"settle_s is {self.settle_s}. Give seconds, 0 or more.", field="settle_s")
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise SettingsError(f"delimiter is {self.delimiter!r}. Give one character.", field="delimiter")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise SettingsError(
                f"encoding is {self.encoding!r}, which is none. Give one like 'utf-8' or 'cp1252'.", field="encoding"
            ) from None
