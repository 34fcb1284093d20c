"""A mail as the data of a Transaction: small, with its contents kept elsewhere."""

from __future__ import annotations

from typing import Any

from casework.sources.attachments import Attachments
from casework.sources.mail.parsing import Address, Mail
from casework.values import Plain, instant

MOST_LISTED = 50
"""Most attachments that the data lists; the original has them all."""


async def mail_data(mail: Mail, keeper: Attachments, original: bytes | None) -> dict[str, Plain]:
    """The data; attachments, and the mail's own bytes where they are given, are kept by `keeper`.

    Keys: `message_id`, `from`, `to`, `cc`, `subject`, `date` (an instant, or None), `text`, `attachments` (each with
    `name`, `media_type`, `size`, and `reference` or None), `original` (a reference, or None), `problems`.

    Raises:
        Exception: what the keeper raises.
    """
    listed: list[dict[str, Any]] = []
    for each in mail.attachments[:MOST_LISTED]:
        reference = None if each.content is None else await keeper.keep(each.name, each.media_type, each.content)
        listed.append({"name": each.name, "media_type": each.media_type, "size": each.size, "reference": reference})
    problems = list(mail.problems)
    if len(mail.attachments) > MOST_LISTED:
        problems.append(f"it has {len(mail.attachments)} attachments; the first {MOST_LISTED} are kept")
    return {
        "message_id": mail.message_id,
        "from": None if mail.sender is None else _address(mail.sender),
        "to": [_address(each) for each in mail.to],
        "cc": [_address(each) for each in mail.cc],
        "subject": mail.subject,
        "date": None if mail.date is None else instant(mail.date),
        "text": mail.text,
        "attachments": listed,
        "original": None if original is None else await keeper.keep("message.eml", "message/rfc822", original),
        "problems": problems,
    }


def _address(address: Address) -> dict[str, str]:
    return {"name": address.name, "address": address.address}
