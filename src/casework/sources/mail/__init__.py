"""Mails as plain values, whatever their bytes are.

Belongs here: bytes to structure, text, addresses and attachments, and a mail as a Transaction's data. Does not belong
here: where mails come from.
"""

from casework.sources.mail.data import mail_data
from casework.sources.mail.parsing import Address, Attachment, Mail, MailLimits, parse_mail

__all__ = ["Address", "Attachment", "Mail", "MailLimits", "mail_data", "parse_mail"]
