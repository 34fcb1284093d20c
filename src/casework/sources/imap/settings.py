"""What is set for a mailbox, and a mail that lies in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from casework.errors import SettingsError
from casework.sources.mail import Mail, MailLimits
from casework.sources.references import SecretReference

Encryption = Literal["tls", "starttls", "none"]
PORTS: Mapping[str, int] = {"tls": 993, "starttls": 143, "none": 143}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxSettings:
    """Where mails are, and what becomes of those that are read.

    Raises:
        SettingsError: a field has no valid value.
    """

    host: str
    user: str
    password: SecretReference
    port: int | None = None
    """993, or 143 where the connection does not begin with TLS."""
    encryption: Encryption = "tls"
    """`starttls` begins in the clear and must change to TLS; `none` is for a server on this machine."""
    ca_file: str | None = None
    """Certificates that are trusted, in PEM; those of the system where it is None."""
    folder: str = "INBOX"
    move_to: str | None = None
    """Where a mail goes once it is taken. None: it stays and is marked as seen; then only unseen mails are read."""
    refused_to: str | None = None
    """Where a mail goes that is itself at fault (BusinessError). None: it stays, and is flagged where it is marked."""
    name: str = "mail"
    """What natural keys begin with. Two mailboxes that both make a Transaction of the same mail need two names."""
    mails_per_poll: int = 50
    bytes_per_poll: int = 64 * 1024 * 1024
    """Mails are fetched until there are so many bytes; the next poll goes on."""
    mail_bytes: int = 25 * 1024 * 1024
    """Of a larger mail only the headers are fetched, and that is told."""
    limits: MailLimits = field(default_factory=MailLimits)
    keep_original: bool = True
    """Whether the mail's own bytes are kept beside its attachments."""
    timeout_s: float = 30.0
    """Longest wait for the server, in seconds."""

    def __post_init__(self) -> None:
        for name in ("host", "user", "folder", "name"):
            if not str(getattr(self, name)).strip():
                raise SettingsError(f"{name} is blank. Give one.", field=name)
        if self.encryption not in PORTS:
            raise SettingsError(
                f"encryption is {self.encryption!r}. Give one of {', '.join(PORTS)}.", field="encryption"
            )
        for name in ("mails_per_poll", "bytes_per_poll", "mail_bytes", "timeout_s"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)!r}. Give a number above 0.", field=name)
        for name in ("move_to", "refused_to"):
            if getattr(self, name) == self.folder:
                raise SettingsError(
                    f"{name} is {self.folder!r}, where mails are read. Name another folder.", field=name
                )

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port or PORTS[self.encryption]}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail in the mailbox: its place there, what it says, its bytes (None where only headers were fetched)."""

    uid: int
    validity: int
    mail: Mail
    original: bytes | None
