"""Mails of a real IMAP server become Transactions, each once, and are marked only when they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from casework.errors import BusinessError, StateError
from casework.process.local import LocalProject
from casework.sources.attachments import Attachments, FolderAttachments
from casework.sources.imap import ImapMailbox, Letter, Mailbox, MailboxSettings
from casework.sources.references import SecretReference
from tests.integration.sources.imap_server import USER, VARIABLE, ImapServer
from tests.integration.sources.projects import errors, keys, project, taken

SEEN, FLAGGED = b"\\Seen", b"\\Flagged"


def mail(number: int, text: str = "hello", headers: str = "") -> bytes:
    lines = (
        f"Message-ID: <{number}@example.com>\r\nSubject: mail {number}\r\nFrom: Anna <anna@example.com>\r\n{headers}"
    )
    return f"{lines}\r\n{text}\r\n".encode()


def settings(server: ImapServer, **more: Any) -> MailboxSettings:
    given = {"host": server.host, "port": server.port, "encryption": "none", "user": USER}
    return MailboxSettings(**{**given, "password": SecretReference(variable=VARIABLE), **more})


def over(mailbox: Mailbox, kept: FolderAttachments, monitor: type[ImapMailbox] = ImapMailbox) -> LocalProject:
    return project(monitor, mailbox=mailbox, kept=(Attachments, kept))


async def test_each_mail_becomes_a_transaction_and_is_marked(imap: ImapServer, kept: FolderAttachments) -> None:
    """BP-22: an IMAP mailbox is a source. BP-20: one Transaction for each mail, found again by its Message-ID."""
    imap.put(mail(1), mail(2))
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake", polls=2)
        assert keys(made) == ["mail:<1@example.com>", "mail:<2@example.com>"]
        assert (taken(made)[0].data["subject"], taken(made)[0].data["text"]) == ("mail 1", "hello")
        assert taken(made)[0].data["from"] == {"name": "Anna", "address": "anna@example.com"}
        assert await kept.read(taken(made)[1].data["original"]) == mail(2)
        assert not errors(made)
    assert imap.flags() == [{SEEN}, {SEEN}]


async def test_reading_marks_nothing(imap: ImapServer) -> None:
    """What is read and not kept stays as it was, so a crash loses no mail."""
    imap.put(mail(1))
    async with Mailbox(settings(imap)) as mailbox:
        assert [letter.mail.subject for letter in await mailbox.letters()] == ["mail 1"]
        assert imap.flags() == [set()]
        assert len(await mailbox.letters()) == 1


async def test_a_crash_between_keeping_and_marking_makes_no_second(imap: ImapServer, kept: FolderAttachments) -> None:
    """The mail is found again, known by its Message-ID, and marked then."""
    imap.put(mail(1))
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept) as made:
        made.store.keys.add("mail:<1@example.com>")  # what the process before the crash left
        await made.run("intake")
        assert not taken(made)
    assert imap.flags() == [{SEEN}]


async def test_the_same_mail_twice_is_one(imap: ImapServer, kept: FolderAttachments) -> None:
    """Duplicates by Message-ID: one Transaction, both marked, whether they come together or days apart."""
    imap.put(mail(1), mail(1, "hello again"), mail(2))
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        imap.put(mail(2))
        await made.run("intake")
        assert keys(made) == ["mail:<1@example.com>", "mail:<2@example.com>"]
    assert imap.flags() == [{SEEN}] * 4


async def test_two_mailboxes_with_names_of_their_own_both_take_it(imap: ImapServer, kept: FolderAttachments) -> None:
    """A mail to two departments is work for both, if their mailboxes have two names."""
    imap.make("Claims")
    imap.put(mail(1))
    imap.put(mail(1), folder="Claims")
    async with Mailbox(settings(imap, name="invoices")) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        store = made.store
    async with Mailbox(settings(imap, name="claims", folder="Claims")) as mailbox, over(mailbox, kept) as made:
        made.store.keys |= store.keys
        await made.run("intake")
        assert keys(made) == ["claims:<1@example.com>"]


async def test_taken_mails_are_moved(imap: ImapServer, kept: FolderAttachments) -> None:
    """With a folder to move to, mails that a person has seen are taken too, and those in it are not taken again."""
    imap.make("Taken & filed ä")
    imap.put(mail(1), mail(2))
    with imap.client() as client:
        client.add_flags(client.search("ALL"), [SEEN])
    wanted = settings(imap, move_to="Taken & filed ä")
    async with Mailbox(wanted) as mailbox, over(mailbox, kept) as made:
        await made.run("intake", polls=2)
        assert len(keys(made)) == 2
    assert imap.subjects() == []
    assert imap.subjects("Taken & filed ä") == [b"mail 1", b"mail 2"]


async def test_a_server_that_cannot_move_copies(
    imap: ImapServer, kept: FolderAttachments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without MOVE the mail is copied and expunged, and only that mail."""
    from imapclient import IMAPClient

    has = IMAPClient.has_capability
    monkeypatch.setattr(IMAPClient, "has_capability", lambda self, name: name != "MOVE" and has(self, name))
    imap.make("Done")
    imap.put(mail(1), mail(2))
    with imap.client() as client:
        client.add_flags([sorted(client.search("ALL"))[1]], [b"\\Deleted"])
    async with Mailbox(settings(imap, move_to="Done")) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        assert keys(made) == ["mail:<1@example.com>"]
    assert (imap.subjects(), imap.subjects("Done")) == ([b"mail 2"], [b"mail 1"])


class Choosy(ImapMailbox):
    """Takes what is no advertisement; fails at its own fault, too, as long as `broken`."""

    broken: ClassVar[bool] = True

    async def save_input_entity(self, entity: Letter) -> Mapping[str, Any]:
        if "2" in entity.mail.subject:
            raise BusinessError("an advertisement", code="ADVERTISEMENT")
        if "3" in entity.mail.subject and self.broken:
            raise KeyError("amount")
        return await super().save_input_entity(entity)


async def test_a_refused_mail_is_flagged_and_a_failed_one_waits(imap: ImapServer, kept: FolderAttachments) -> None:
    """BP-20: one bad mail does not stop the rest. What is the mail's own fault is told once; what is not stays unseen,
    and is left alone for a while."""
    imap.put(mail(1), mail(2), mail(3), mail(4))
    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept, Choosy) as made:
        await made.run("intake", polls=3)
        assert keys(made) == ["mail:<1@example.com>", "mail:<4@example.com>"]
        assert [code for code, _ in errors(made)] == ["ADVERTISEMENT", "KeyError"]
    assert imap.flags() == [{SEEN}, {SEEN, FLAGGED}, set(), {SEEN}]

    class Mended(Choosy):
        broken: ClassVar[bool] = False

    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept, Mended) as made:
        await made.run("intake")
        assert keys(made) == ["mail:<3@example.com>"]


async def test_a_refused_mail_is_moved_where_it_is_told(imap: ImapServer, kept: FolderAttachments) -> None:
    """A folder for what was refused, beside the one for what was taken."""
    imap.make("Done", "Refused")
    imap.put(mail(1), mail(2))
    wanted = settings(imap, move_to="Done", refused_to="Refused")
    async with Mailbox(wanted) as mailbox, over(mailbox, kept, Choosy) as made:
        await made.run("intake")
    assert (imap.subjects(), imap.subjects("Done"), imap.subjects("Refused")) == ([], [b"mail 1"], [b"mail 2"])


async def test_a_poll_takes_so_many_and_so_much(imap: ImapServer, kept: FolderAttachments) -> None:
    """Bounded by number and by bytes; the next poll goes on, and nothing is passed over."""
    imap.put(*(mail(number, "x" * 1000) for number in range(7)))
    async with Mailbox(settings(imap, mails_per_poll=3, bytes_per_poll=2500)) as mailbox, over(mailbox, kept) as made:
        for expected in (2, 4, 6, 7, 7):
            await made.run("intake")
            assert len(keys(made)) == expected
    async with Mailbox(settings(imap, mails_per_poll=3)) as mailbox:
        imap.put(*(mail(number) for number in range(10, 17)))
        assert len(await mailbox.letters()) == 3


async def test_bad_mails_do_not_fill_each_poll(imap: ImapServer, kept: FolderAttachments) -> None:
    """As many as a poll takes fail each time; the good one behind them is reached all the same."""
    imap.put(*(mail(number) for number in (3, 13, 23)), mail(1))
    async with Mailbox(settings(imap, mails_per_poll=3)) as mailbox, over(mailbox, kept, Choosy) as made:
        await made.run("intake", polls=2)
        assert keys(made) == ["mail:<1@example.com>"]


async def test_of_a_mail_that_is_too_large_only_headers_are_read(imap: ImapServer, kept: FolderAttachments) -> None:
    """Its size is asked for first. It becomes a Transaction that says so, and is marked as any other."""
    imap.put(mail(1, "x" * 5000), mail(2))
    async with Mailbox(settings(imap, mail_bytes=2000)) as mailbox, over(mailbox, kept) as made:
        await made.run("intake")
        large, small = taken(made)
        assert (large.data["subject"], large.data["text"], large.data["original"]) == ("mail 1", "", None)
        assert "over the limit of 2,000: only its headers are read" in large.data["problems"][0]
        assert small.data["original"] is not None
    assert imap.flags() == [{SEEN}, {SEEN}]


async def test_a_mailbox_that_was_made_anew_is_not_marked(imap: ImapServer, kept: FolderAttachments) -> None:
    """UIDs hold as long as UIDVALIDITY: after it has changed, a number may be another mail's."""
    imap.make("In")
    imap.put(mail(1), folder="In")
    async with Mailbox(settings(imap, folder="In")) as mailbox:
        (letter,) = await mailbox.letters()
        with imap.client() as client:
            client.delete_folder("In")
            client.create_folder("In")
        imap.put(mail(2), folder="In")
        await mailbox.__aexit__()
        with pytest.raises(StateError, match="made anew"):
            await mailbox.taken(letter)
        (letter,) = await mailbox.letters()
        await mailbox.taken(letter)
        assert await mailbox.letters() == []


async def test_what_a_person_removed_meanwhile_is_no_fault(imap: ImapServer, kept: FolderAttachments) -> None:
    """A mail that is gone between reading and marking has its Transaction, and nothing is left to do."""
    imap.put(mail(1))

    class Slow(ImapMailbox):
        async def save_input_entity(self, entity: Letter) -> Mapping[str, Any]:
            with imap.client() as client:
                client.add_flags([entity.uid], [b"\\Deleted"])
                client.expunge()
            return await super().save_input_entity(entity)

    async with Mailbox(settings(imap)) as mailbox, over(mailbox, kept, Slow) as made:
        await made.run("intake")
        assert (keys(made), errors(made)) == (["mail:<1@example.com>"], [])
