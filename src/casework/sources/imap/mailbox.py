"""One mailbox: a connection for each poll, on which mails are fetched and afterwards marked or moved.

The client is a blocking one, so its work is done in threads, one call at a time. Mails are found by UID, which holds as
long as the folder's UIDVALIDITY; where that has changed, nothing is marked, and the next poll finds the mails anew.
"""

from __future__ import annotations

import asyncio
import imaplib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from casework.errors import BusinessError, CaseworkError, SettingsError, StateError, UnreachableError
from casework.sources.aside import SetAside
from casework.sources.imap.settings import PORTS, Letter, MailboxSettings
from casework.sources.mail import parse_mail

T = TypeVar("T")
_BROKEN = (OSError, imaplib.IMAP4.error, ValueError)
"""What the client raises where the connection or the server's words are of no use; its own errors are these, too."""
HEADERS_BYTES = 256 * 1024
"""What is fetched of a mail that is too large."""
MOST_NAMED = 20
"""Most folders that an error names."""


class Mailbox:
    """Lives as long as the worker; `async with` closes the connection at its end.

    What failed is remembered here and set aside for a while, so that a few bad mails do not fill each poll.
    """

    def __init__(self, settings: MailboxSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._client: Any = None
        self._validity = 0
        self._aside = SetAside()

    async def __aenter__(self) -> Mailbox:
        """The mailbox itself; it connects when it is read."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the connection."""
        await self._do(self._close)

    async def letters(self) -> list[Letter]:
        """The mails that are to be taken, the oldest first, as many as one poll takes.

        Raises:
            UnreachableError: the server is away, does not answer, or is no IMAP server.
            SettingsError: it refuses the login, has no such folder or not the right to it, or no trusted certificate.
        """
        return await self._do(self._letters)

    async def taken(self, letter: Letter) -> None:
        """Mark the mail as seen, or move it.

        Raises:
            StateError: the folder has been made anew since; nothing was marked.
            UnreachableError, SettingsError: as `letters`.
        """
        await self._do(lambda: self._put(letter, self.settings.move_to, [b"\\Seen"]))
        self._aside.forget((letter.validity, letter.uid))

    async def refused(self, letter: Letter, error: Exception) -> None:
        """Move or flag a mail that is itself at fault; leave any other alone for a while, then it is read again.

        Raises:
            StateError, UnreachableError, SettingsError: as `taken`.
        """
        self._aside.put((letter.validity, letter.uid))
        settings = self.settings
        if isinstance(error, BusinessError) and (settings.refused_to or settings.move_to is None):
            await self._do(lambda: self._put(letter, settings.refused_to, [b"\\Seen", b"\\Flagged"]))

    async def _do(self, work: Callable[[], T]) -> T:
        def alone() -> T:
            with self._lock, self._told():  # a call that nobody waits for any more still ends before the next
                return work()

        return await asyncio.to_thread(alone)

    def _letters(self) -> list[Letter]:
        self._close()
        client = self._opened()
        wanted = ["NOT", "DELETED"] if self.settings.move_to else ["UNSEEN", "NOT", "DELETED"]
        found = [uid for uid in sorted(client.search(wanted)) if not self._aside.waits((self._validity, uid))]
        chosen = found[: self.settings.mails_per_poll]
        sizes = client.fetch(chosen, [b"RFC822.SIZE"]) if chosen else {}
        letters: list[Letter] = []
        room = self.settings.bytes_per_poll
        for uid in chosen:
            size = int(sizes.get(uid, {}).get(b"RFC822.SIZE", 0))
            room -= min(size, self.settings.mail_bytes)
            if letters and room < 0:
                break
            letters += self._letter(client, uid, size)
        return letters

    def _letter(self, client: Any, uid: int, size: int) -> list[Letter]:
        """The mail, or none where somebody has removed it meanwhile."""
        limit = self.settings.mail_bytes
        raw = None
        if size <= limit:
            raw = _part(client.fetch([uid], [f"BODY.PEEK[]<0.{limit + 1}>"]), uid)
            if raw is None:
                return []
            if len(raw) <= limit:
                mail = parse_mail(raw, self.settings.limits)
                return [Letter(uid, self._validity, mail, raw)]
        head = _part(client.fetch([uid], [f"BODY.PEEK[HEADER]<0.{HEADERS_BYTES}>"]), uid)
        if head is None:
            return []
        size = max(size, len(raw or b""))
        told = f"the mail of {size:,} bytes is over the limit of {limit:,}: only its headers are read"
        return [Letter(uid, self._validity, parse_mail(head, self.settings.limits, problems=[told]), None)]

    def _put(self, letter: Letter, folder: str | None, flags: list[bytes]) -> None:
        """Mark the mail, or move it where a folder is given; on a connection that broke since, once more."""
        try:
            self._put_now(letter, folder, flags)
        except _BROKEN:
            self._close()
            self._put_now(letter, folder, flags)

    def _put_now(self, letter: Letter, folder: str | None, flags: list[bytes]) -> None:
        client = self._client or self._opened()
        if self._validity != letter.validity:
            raise StateError(
                f"folder {self.settings.folder!r} at {self.settings.place} was made anew while its mails were taken. "
                "Nothing was marked; the next poll finds them."
            )
        if folder is None or flags != [b"\\Seen"]:
            client.add_flags([letter.uid], flags, silent=True)
        if folder is not None:
            self._move(client, letter.uid, folder)

    def _move(self, client: Any, uid: int, folder: str) -> None:
        if client.has_capability("MOVE"):
            client.move([uid], folder)
            return
        client.copy([uid], folder)
        client.add_flags([uid], [b"\\Deleted"], silent=True)
        if client.has_capability("UIDPLUS"):  # else it would expunge what others have deleted
            client.uid_expunge([uid])

    def _opened(self) -> Any:
        """A new connection, logged in, with the folder open."""
        settings = self.settings
        secret = settings.password.read("password")
        client = self._client = self._connected()
        try:
            client.login(settings.user, secret.reveal())
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            words = _words(error).replace(secret.reveal(), "***")
            raise SettingsError(
                f"user {settings.user!r} at {settings.place}: the login was refused ({words}). Check user, and the "
                f"password in {settings.password}.",
                field="user",
            ) from None
        self._validity = self._selected(client)
        return client

    def _connected(self) -> Any:
        settings = self.settings
        client_class = _client_class()
        trusted = None if settings.encryption == "none" else self._trusted()
        client = client_class(
            settings.host,
            port=settings.port or PORTS[settings.encryption],
            ssl=settings.encryption == "tls",
            ssl_context=trusted,
            timeout=settings.timeout_s,
        )
        client.normalise_times = False
        if settings.encryption == "starttls":
            self._client = client  # closed if it cannot change
            if not client.has_capability("STARTTLS"):
                raise SettingsError(
                    f"encryption is 'starttls', which {settings.place} does not offer. Give 'tls'.", field="encryption"
                )
            client.starttls(trusted)
        return client

    def _trusted(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.settings.ca_file)
        except OSError as error:
            raise SettingsError(
                f"ca_file is {self.settings.ca_file!r}, which cannot be used ({error.strerror or error}). Name a file "
                "of certificates in PEM.",
                field="ca_file",
            ) from None

    def _selected(self, client: Any) -> int:
        settings = self.settings
        try:
            found = client.select_folder(settings.folder)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            raise self._no_folder(client, "folder", settings.folder, _words(error)) from None
        if b"READ-ONLY" in found:
            raise SettingsError(
                f"folder {settings.folder!r} at {settings.place} may only be read by {settings.user!r}, so no mail "
                "could be marked. Grant the right to write, or name another folder.",
                field="folder",
            )
        for name in ("move_to", "refused_to"):
            folder = getattr(settings, name)
            if folder is not None and not client.folder_exists(folder):
                raise self._no_folder(client, name, folder, "it is not there")
        return int(found[b"UIDVALIDITY"])

    def _no_folder(self, client: Any, field: str, folder: str, why: str) -> SettingsError:
        names = [str(name) for _, _, name in client.list_folders()]
        known = ", ".join(repr(name) for name in names[:MOST_NAMED]) or "none"
        return SettingsError(
            f"{field} is {folder!r}, which cannot be used at {self.settings.place}: {why}. Make the folder, or name "
            f"one that is there: {known}.",
            field=field,
        )

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.__exit__(None, None, None)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the client raises, as errors of ours; the connection is then closed."""
        try:
            yield
        except CaseworkError:
            self._close()
            raise
        except ssl.SSLCertVerificationError as error:
            self._close()
            raise SettingsError(
                f"host {self.settings.place}: its certificate is not trusted ({error.verify_message}). Name the host "
                "as its certificate does, or give the certificate's authority in ca_file.",
                field="host",
            ) from None
        except _BROKEN as error:
            self._close()
            raise UnreachableError(
                f"host {self.settings.place} cannot be read by IMAP ({_words(error)}). Check host, port and encryption "
                f"({self.settings.encryption}), and that the server is up."
            ) from None


def _part(fetched: Any, uid: int) -> bytes | None:
    """What was fetched of a body, under whatever name; None where the mail is gone."""
    return next((value for name, value in fetched.get(uid, {}).items() if name.startswith(b"BODY[")), None)


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:200]


def _client_class() -> Any:
    try:
        from imapclient import IMAPClient  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise SettingsError("No client for IMAP is installed: install casework[mail].", field="host") from None
    return IMAPClient
