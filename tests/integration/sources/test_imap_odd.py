"""Odd mails on a real server: every one becomes a Transaction, and none stops the rest."""

from __future__ import annotations

from pathlib import Path

from casework.sources.attachments import FolderAttachments
from casework.sources.imap import Mailbox
from casework.sources.mail import parse_mail
from tests.integration.sources.imap_server import ImapServer
from tests.integration.sources.projects import errors, keys, taken
from tests.integration.sources.test_imap import mail, over, settings
from tests.unit.sources.mails import library_mails

SEEN = b"\\Seen"
ODD = (
    b"\r\n",
    b"no headers at all",
    b"Subject: =?klingon?q?a?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\n\xff\xfe\r\n",
    b"Subject: nul\r\nMessage-ID: <nul@x>\r\n\r\nbytes \x01\x7f\x80 here\r\n",
    b"Message-ID: <twice@x>\r\nMessage-ID: <again@x>\r\nSubject: a\r\nSubject: b\r\n\r\nx\r\n",
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/pdf\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\n!!!not base64!!!\r\n",
    b"Content-Type: multipart/mixed\r\n\r\nno border\r\n",
)


async def test_every_mail_of_the_library_comes_through(imap: ImapServer, kept: FolderAttachments) -> None:
    """BP-22. What the standard library tests its parser with: as many Transactions as there are different mails, all
    are marked, and none is an error."""
    mails = library_mails()
    imap.put(*mails.values())
    with imap.client() as client:  # the server has its own ways with ends of lines
        held = client.fetch(client.search("ALL"), ["BODY.PEEK[]"]).values()
    wanted = {f"mail:{parse_mail(each[b'BODY[]']).key}" for each in held}
    async with Mailbox(settings(imap, mails_per_poll=20)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake", polls=len(mails) // 20 + 2)
        assert errors(made) == []
        assert set(keys(made)) == wanted
        assert 40 <= len(keys(made)) == len(wanted) <= len(mails)
        for each in taken(made):
            for attachment in each.data["attachments"]:
                assert len(await kept.read(attachment["reference"])) == attachment["size"]
    assert imap.flags() == [{SEEN}] * len(mails)


async def test_odd_mails_come_through(imap: ImapServer, kept: FolderAttachments) -> None:
    """Empty ones, unknown character sets, headers that stand twice, attachments that are none."""
    imap.put(mail(1), *ODD, mail(2))
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        assert errors(made) == []
        assert len(keys(made)) == len(ODD) + 2
        assert keys(made)[-1] == "mail:<2@example.com>"
    assert imap.flags() == [{SEEN}] * (len(ODD) + 2)


async def test_a_huge_attachment_is_left_out(imap: ImapServer, kept: FolderAttachments, tmp_path: Path) -> None:
    """The mail's own bytes are kept whole; the attachment is named with its size, and not taken out of it."""
    part = b"Content-Type: application/pdf; name=big.pdf\r\n\r\n" + b"x" * (11 * 1024 * 1024)
    raw = b"Message-ID: <big@x>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" + part + b"\r\n--b--\r\n"
    imap.put(raw)
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        (transaction,) = taken(made)
        (attachment,) = transaction.data["attachments"]
        assert (attachment["name"], attachment["size"], attachment["reference"]) == ("big.pdf", 11 * 1024 * 1024, None)
        assert await kept.read(transaction.data["original"]) == raw
    assert len([each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]) == 1
