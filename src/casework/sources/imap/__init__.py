"""A mailbox on an IMAP server as a source of work.

Belongs here: the connection, which mails are read, what becomes of them, and the monitor. Does not belong here: what a
mail says (`mail`). Needs the extra `mail`.
"""

from casework.sources.imap.mailbox import Mailbox
from casework.sources.imap.monitor import ImapMailbox
from casework.sources.imap.settings import Letter, MailboxSettings

__all__ = ["ImapMailbox", "Letter", "Mailbox", "MailboxSettings"]
