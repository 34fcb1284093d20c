"""No bytes raise, and none take long: what goes beyond the bounds is kept whole and told."""

from __future__ import annotations

from collections import Counter
from email import message_from_bytes
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sources.mails import library_mails

from casework.sources.mail import MailLimits, mail_data, parse_mail
from casework.sources.mail.structure import HEADER_LIMIT, LINES_LIMIT, MOST_HEADERS, MOST_PARTS
from casework.values import bounded, clean, plain

MIB = 1024 * 1024


def nested(depth: int) -> bytes:
    return (
        "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(depth)).encode() + b"\nhi\n"
    )


TOO_MUCH = {
    "lines": b"\n" * (LINES_LIMIT + 1),
    "headers": b"a: b\n" * (MOST_HEADERS + 1),
    "parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * (MOST_PARTS + 1),
    "depth": nested(100_000),
    "nested mails": b"Content-Type: message/rfc822\n\n" * 3000 + b"hi",
    "headers of parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + (b"--b\nX: " + b"x" * 8000 + b"\n\n") * 200,
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_too_intricate_is_kept_whole(name: str) -> None:
    """The mail itself is its one attachment, and what was too much is told."""
    raw = b"Message-ID: <a@b>\n" + TOO_MUCH[name]
    mail = parse_mail(raw, MailLimits(attachment_bytes=50 * MIB))
    assert [(each.name, each.content) for each in mail.attachments] == [("message.eml", raw)]
    assert any("the mail cannot be taken apart" in each for each in mail.problems)
    assert mail.key == "<a@b>" or name == "headers"


SLOW = {
    "quotes": b"Cc: " + b'"' * 30_000,
    "brackets": b"From: " + b"(" * 30_000,
    "addresses": b"To: " + b"a," * 15_000,
    "many addresses": (b"To: " + b'"' * 8_000 + b"\n") * 100 + b"Subject: x",
    "parameters": b"Content-Type: text/plain" + b";a=b" * 8_000,
    "parameters of parts": b"Content-Type: multipart/mixed; boundary=b\n\n"
    + (b"--b\nContent-Type: text/plain" + b";a=b" * 200 + b"\n\nx\n") * 900,
    "tags": b"Content-Type: text/html\n\n" + b"<a" * MIB,
    "comments": b"Content-Type: text/html\n\n" + b"<!--" * MIB,
    "silent tags": b"Content-Type: text/html\n\n" + b"<script>" * MIB,
    "a long header": b"Subject: " + b"x" * (25 * MIB),
    "idna": b"Content-Type: text/plain; charset=idna\n\n" + b"a." * MIB,
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", SLOW)
def test_what_makes_parsers_slow_does_not(name: str) -> None:
    """Each took the library's parser minutes, or would."""
    mail = parse_mail(SLOW[name] + b"\n\nhi")
    assert all(len(each) <= 400 for each in mail.problems)
    assert len(mail.to) <= 200
    assert len(mail.subject) <= min(1000, HEADER_LIMIT)


def test_a_header_that_is_too_long_is_cut() -> None:
    """And told."""
    mail = parse_mail(b"Subject: " + b"x" * (HEADER_LIMIT + 1) + b"\nX-Other: " + b"y" * 100 + b"\n\nhi")
    assert mail.problems == ("it has no date", "header Subject is too long and was cut")


@given(st.binary(max_size=3000))
def test_no_bytes_raise(raw: bytes) -> None:
    """Whatever comes is a mail that can be kept."""
    _can_be_kept(raw)


PIECES = [
    b"Content-Type: ",
    b"multipart/mixed",
    b"; boundary=",
    b"b",
    b"\n--b",
    b"--",
    b"\n",
    b"\n\n",
    b"From: ",
    b"\r",
    b"<",
    b">",
]
PIECES += [
    b"@",
    b'"',
    b"(",
    b"=?utf-8?q?",
    b"?=",
    b"message/rfc822",
    b"text/html",
    b"; charset=",
    b"\xff",
    b"\x00",
    b"; name=",
]
PIECES += [
    b"Content-Transfer-Encoding: base64",
    b"Date: ",
    b"Message-ID: ",
    b"; filename*0*=utf-8''%ff",
    b",",
    b":",
    b";",
    b" ",
]
PIECES += [
    b"Content-Disposition: attachment",
    b"To: ",
    b"Subject: ",
    b"message/delivery-status",
    b"Fri, 4 May 2001 14:05:44",
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join))
def test_no_arrangement_of_a_mails_pieces_raises(raw: bytes) -> None:
    """Nearer to mails than bytes by chance are."""
    _can_be_kept(raw)


class _Nowhere:
    """Keeps nothing."""

    async def keep(self, name: str, media_type: str, content: bytes) -> str:
        return "sha256:" + "0" * 64

    async def read(self, reference: str) -> bytes:
        raise AssertionError(reference)


def _can_be_kept(raw: bytes) -> None:
    mail = parse_mail(raw)
    made = plain({"key": mail.key, "text": mail.text, "subject": mail.subject, "problems": mail.problems})
    assert clean(made).replaced == 0
    assert mail.key.strip()
    assert all(each.name.strip() and "/" not in each.name for each in mail.attachments)


def _leaves(part: Message) -> int:
    """Parts that are no containers; a mail in a mail is one."""
    if part.is_multipart() and part.get_content_maintype() != "message":
        return sum(_leaves(each) for each in part.get_payload())  # type: ignore[arg-type, misc]  # its parts
    return 1


async def test_every_mail_of_the_library_is_accounted_for() -> None:
    """BP-22. Of each mail that the standard library tests itself with, every part is text, an attachment, or HTML
    beside its plain form; each has data that can be kept; what is odd of it is told."""
    ways: Counter[str] = Counter()
    for name, raw in library_mails().items():
        mail = parse_mail(raw)
        data = bounded(await mail_data(mail, _Nowhere(), raw), "data")
        assert clean(data).replaced == 0, name
        leaves = _leaves(message_from_bytes(raw))
        texts = leaves - len(mail.attachments)
        assert texts >= 0, name
        assert texts or not mail.text, name
        assert mail.text or mail.attachments or not any(part.strip() for part in _texts(raw)), name
        ways.update({"mails": 1, "with text": bool(mail.text), "attachments": len(mail.attachments)})
        ways.update({"with id": mail.message_id is not None, "dated": mail.date is not None})
        ways.update({"odd": bool(set(mail.problems) - {"it has no date"})})
    assert ways["mails"] >= 40
    assert min(ways.values()) >= 10, ways


def _texts(raw: bytes) -> list[bytes]:
    return [
        part.get_payload(decode=True)  # type: ignore[misc]  # bytes of a leaf
        for part in message_from_bytes(raw).walk()
        if not part.is_multipart() and part.get_content_maintype() == "text"
    ]
