"""Mails of an IMAP mailbox as Transactions.

A mail is marked or moved only when its Transaction is kept. What a crash leaves between the two is found again, known
by its Message-ID, and marked then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casework.process.monitors import InputMonitorTask
from casework.sources.attachments import Attachments
from casework.sources.imap.mailbox import Mailbox
from casework.sources.imap.settings import Letter
from casework.sources.mail import mail_data


class ImapMailbox(InputMonitorTask[Letter]):
    """Each mail a Transaction, with the data that `mail_data` describes. Derive from it to make other data of a mail.

    A project provides `Mailbox`, which lives as long as the worker, and `Attachments`.
    """

    def __init__(self, mailbox: Mailbox, attachments: Attachments) -> None:
        self.mailbox = mailbox
        self.attachments = attachments

    async def query_input_entities(self) -> Sequence[Letter]:
        """The mails that have not been taken, the oldest first.

        Raises:
            UnreachableError, SettingsError: as `Mailbox.letters`.
        """
        return await self.mailbox.letters()

    async def prepare_input_entity(self, entity: Letter) -> Any:
        """Keep attachments and original; gives the data."""
        original = entity.original if self.mailbox.settings.keep_original else None
        return await mail_data(entity.mail, self.attachments, original)

    async def save_input_entity(self, entity: Letter) -> Mapping[str, Any]:  # noqa: ARG002  # all is prepared
        """The data."""
        return dict(self.prepared)

    async def acknowledge_input_entity(self, entity: Letter) -> None:
        """Mark or move the mail."""
        await self.mailbox.taken(entity)

    async def reject_input_entity(self, entity: Letter, error: Exception) -> None:
        """Move or flag a mail that is at fault itself; leave any other alone for a while."""
        await self.mailbox.refused(entity, error)

    def natural_key(self, entity: Letter) -> str | None:
        """Its Message-ID, or the hash of its bytes."""
        return f"{self.mailbox.settings.name}:{entity.mail.key}"
