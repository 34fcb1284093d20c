"""Settings of this example, read from the environment when the application is loaded.

LOAN_MAIL_FOLDER
    Folder of `.eml` files. Default: `mails` in the working folder. What is taken goes to `done` in it, what is at fault
    itself to `refused`.
LOAN_MAIL_IMAP
    A mailbox instead, as `user@host` or `user@host:port`, over TLS. Default: none. Needs the extra `mail`.
LOAN_MAIL_PASSWORD_FILE
    File with the mailbox's password. Needed with LOAN_MAIL_IMAP.
LOAN_MAIL_KEPT
    Folder for attachments and original mails, which all workers see. Default: `attachments` in the working folder.
LOAN_MAIL_LETTERS
    Folder for letters and reports, which all workers see. Default: `letters` in the working folder.

They have a prefix of their own: `CASEWORK_` belongs to the platform, which refuses what it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from casework.errors import SettingsError
from casework.sources.imap import MailboxSettings
from casework.sources.references import SecretReference

FOLDER = "LOAN_MAIL_FOLDER"
IMAP = "LOAN_MAIL_IMAP"
PASSWORD_FILE = "LOAN_MAIL_PASSWORD_FILE"  # noqa: S105  # the name of a variable
KEPT = "LOAN_MAIL_KEPT"
LETTERS = "LOAN_MAIL_LETTERS"


@dataclass(frozen=True)
class LoanMailSettings:
    """Where mails come from, and where attachments and letters go."""

    folder: str = "mails"
    kept: str = "attachments"
    letters: str = "letters"
    mailbox: MailboxSettings | None = None
    """Where it is given, mails come from there and not from `folder`."""
    settle_s: float = 0.5
    """A file is whole when nothing has changed it for so many seconds."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> LoanMailSettings:
        """Read them from the environment; a blank value counts as none.

        Raises:
            SettingsError: the mailbox is not written as `user@host`, or its password's file is not named.
        """
        source = os.environ if environ is None else environ
        given = {name: source.get(name, "").strip() for name in (FOLDER, KEPT, LETTERS, IMAP, PASSWORD_FILE)}
        mailbox = _mailbox(given[IMAP], given[PASSWORD_FILE]) if given[IMAP] else None
        return cls(given[FOLDER] or cls.folder, given[KEPT] or cls.kept, given[LETTERS] or cls.letters, mailbox)


def _mailbox(place: str, password_file: str) -> MailboxSettings:
    user, at, address = place.rpartition("@")
    host, colon, port = address.partition(":")
    if not at or not user or not host or (colon and not (port.isascii() and port.isdigit())):
        raise SettingsError(f"{IMAP} is {place!r}. Write it as user@host or user@host:port.", field=IMAP)
    if not password_file:
        raise SettingsError(
            f"{PASSWORD_FILE} is not set. Name the file of the mailbox's password.", field=PASSWORD_FILE
        )
    return MailboxSettings(
        host=host,
        user=user,
        password=SecretReference(file=password_file),
        port=int(port) if port else None,
        move_to="Taken",
        refused_to="Refused",
    )
