"""A mail as a plain value: what ordinary and odd ones say."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

from casework.sources.mail import Address, MailLimits, parse_mail

PLAIN = b"""Message-ID: <1@example.com>
From: Anna Bergmann <anna@example.com>
To: "Office, First" <office@example.com>, b@example.com
Cc: c@example.com
Subject: Invoice 7
Date: Tue, 1 Dec 2026 14:30:00 +0200

hello
"""


def mixed(*parts: bytes, kind: bytes = b"mixed", border: bytes = b"b") -> bytes:
    head = b"Date: Tue, 1 Dec 2026 14:30:00 +0200\nContent-Type: multipart/" + kind + b"; boundary=" + border + b"\n"
    return head + b"".join(b"\n--" + border + b"\n" + part for part in parts) + b"\n--" + border + b"--\n"


def test_a_plain_mail() -> None:
    """Every field; the date is a UTC instant."""
    mail = parse_mail(PLAIN)
    assert (mail.key, mail.message_id, mail.subject) == ("<1@example.com>", "<1@example.com>", "Invoice 7")
    assert mail.sender == Address("Anna Bergmann", "anna@example.com")
    assert mail.to == (Address("Office, First", "office@example.com"), Address("", "b@example.com"))
    assert mail.cc == (Address("", "c@example.com"),)
    assert mail.date == datetime(2026, 12, 1, 12, 30, tzinfo=UTC)
    assert (mail.text, mail.attachments, mail.problems) == ("hello", (), ())


def test_attachments_have_names_types_and_contents() -> None:
    """Coded names, names over several parameters, names that are paths, and none at all."""
    pdf = base64.b64encode(b"%PDF-1.7")
    mail = parse_mail(
        mixed(
            b"Content-Type: text/plain\n\nsee below",
            b"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n"
            b"Content-Disposition: attachment; filename*=utf-8''R%C3%A9sum%C3%A9.pdf\n\n" + pdf,
            b'Content-Type: application/pdf; name="=?utf-8?q?=C3=A4.pdf?="\n\nx',
            b'Content-Type: image/png\nContent-Disposition: attachment; filename="..\\..\\evil/../.bashrc"\n\nx',
            b"Content-Type: image/png\n\nx",
            b'Content-Type: text/plain\nContent-Disposition: attachment; filename="notes.txt"\n\nnot the text',
        )
    )
    assert [(each.name, each.media_type) for each in mail.attachments] == [
        ("Résumé.pdf", "application/pdf"),
        ("ä.pdf", "application/pdf"),
        ("bashrc", "image/png"),
        ("part-5.png", "image/png"),
        ("notes.txt", "text/plain"),
    ]
    assert (mail.attachments[0].content, mail.attachments[0].size, mail.text) == (b"%PDF-1.7", 8, "see below")


def test_a_huge_attachment_is_left_out_and_told() -> None:
    """Its name and size are known; its content is not kept, and the rest is whole."""
    big = b"Content-Type: application/pdf; name=big.pdf\n\n" + b"x" * 1001
    mail = parse_mail(
        mixed(b"Content-Type: text/plain\n\nhello", big, b"Content-Type: image/gif; name=a.gif\n\nx"),
        MailLimits(attachment_bytes=1000),
    )
    assert [(each.name, each.size, each.content) for each in mail.attachments] == [
        ("big.pdf", 1001, None),
        ("a.gif", 1, b"x"),
    ]
    assert mail.problems == ("attachment 'big.pdf' of 1,001 bytes is left out: over the limit of 1,000",)


def test_a_mail_in_a_mail_is_one_attachment() -> None:
    """As its sender wrote it, with what is attached to it; its text is not the mail's."""
    inner = b"Subject: two  blanks\nX-Odd: \xe4\nMessage-ID: <inner@x>\n" + mixed(
        b"Content-Type: image/gif; name=a.gif\n\nx", border=b"inner"
    )
    mail = parse_mail(mixed(b"Content-Type: text/plain\n\nouter", b"Content-Type: message/rfc822\n\n" + inner))
    (attachment,) = mail.attachments
    assert (mail.text, attachment.name, attachment.media_type) == ("outer", "part-2.eml", "message/rfc822")
    assert attachment.content is not None
    assert attachment.content.startswith(b"Subject: two  blanks\nX-Odd: \xe4\n")
    nested = parse_mail(attachment.content)
    assert (nested.message_id, [each.name for each in nested.attachments]) == ("<inner@x>", ["a.gif"])


@pytest.mark.parametrize(
    ("charset", "content", "text", "problem"),
    [
        (b"iso-8859-15", b"10 \xa4", "10 €", None),
        (b"utf-8", "zwölf".encode(), "zwölf", None),
        (b"us-ascii", "zwölf".encode(), "zwölf", "it is not us-ascii; read as UTF-8"),
        (b"utf-8", b"zw\xf6lf", "zwölf", "it is not utf-8; read as Windows-1252"),
        (b"klingon", b"zw\xf6lf", "zwölf", "the character set 'klingon' is not known; read as Windows-1252"),
        (b"zlib", b"x", "x", "the character set 'zlib' is not known; read as UTF-8"),
        (b"punycode", b"a-b", "a-b", "the character set 'punycode' is not known; read as UTF-8"),
        (b"unicode_escape", b"\\x41", "\\x41", "the character set 'unicode_escape' is not known; read as UTF-8"),
        (b"undefined", b"x", "x", "the character set 'undefined' is not known; read as UTF-8"),
        (b"idna", b"xn--a", "xn--a", "the character set 'idna' is not known; read as UTF-8"),
        (
            b"shift_jis",
            b"\x93\xfa\x96\x7b\xff",
            "日本\ufffd",
            "it is not all shift_jis; what cannot be read is replaced",
        ),
    ],
)
def test_character_sets(charset: bytes, content: bytes, text: str, problem: str | None) -> None:
    """What is named, what is there, and what is told where they differ."""
    mail = parse_mail(
        b"Date: Tue, 1 Dec 2026 14:30:00 +0200\nContent-Type: text/plain; charset=" + charset + b"\n\n" + content
    )
    assert (mail.text, mail.problems) == (text, (f"text of part 1: {problem}",) if problem else ())


def test_headers_that_are_no_ascii() -> None:
    """Bytes in a header are UTF-8 if they can be; coded words are decoded, broken ones stay."""
    mail = parse_mail("Subject: Rechnung für Käthe\nFrom: =?utf-8?b?S8OkdGhl?= <k@x>\n\n".encode())
    assert (mail.subject, mail.sender) == ("Rechnung für Käthe", Address("Käthe", "k@x"))
    mail = parse_mail(b"Subject: Rechnung f\xfcr =?utf-8?b?!!?= =?x\n\n")
    assert mail.subject.startswith("Rechnung für")
    assert "header Subject is neither ASCII nor UTF-8; read as Windows-1252" in mail.problems


def test_a_mail_without_an_id_is_known_by_its_bytes() -> None:
    """The same bytes are the same mail, other bytes are another; a blank id is none."""
    one, two = parse_mail(b"Subject: a\n\nx"), parse_mail(b"Message-ID:  \nSubject: a\n\nx")
    assert one.message_id is two.message_id is None
    assert (one.key, one.key == two.key) == (parse_mail(b"Subject: a\n\nx").key, False)
    assert one.key.startswith("sha256:")


def test_an_id_is_the_same_however_its_line_was_folded() -> None:
    """Servers fold long lines in their own ways; what stands around the id is not part of it."""
    for said in (b"<a@b>", b"\n  <a@b>", b" <a@b> (added by server)", b"<a\n @b>"):
        assert parse_mail(b"Message-ID: " + said + b"\n\n").key == "<a@b>"
    long = parse_mail(b"Message-ID: <" + b"x" * 5000 + b"@b>\n\n").key
    assert len(long) < 600
    assert long != parse_mail(b"Message-ID: <" + b"x" * 5000 + b"@c>\n\n").key


def test_headers_that_stand_twice() -> None:
    """The first counts and it is told; addressees are those of all."""
    mail = parse_mail(
        b"Message-ID: <1@x>\nMessage-ID: <2@x>\nSubject: a\nSubject: b\nTo: a@x\nTo: b@x\nFrom: a@x, b@x\n\n"
    )
    assert (mail.key, mail.subject, [each.address for each in mail.to]) == ("<1@x>", "a", ["a@x", "b@x"])
    assert {
        "header Message-Id stands 2 times; the first counts",
        "header Subject stands 2 times; the first counts",
        "From names 2 addresses; the first counts",
    } <= set(mail.problems)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"yesterday", "Date 'yesterday' is no date"),
        (b"Tue, 1 Dec 99999 14:30:00 +0200", "Date 'Tue, 1 Dec 99999 14:30:00 +0200' is no date"),
        (b"Fri, 31 Dec 9999 23:59:59 -1200", "Date 'Fri, 31 Dec 9999 23:59:59 -1200' is no date"),
        (b"", "it has no date"),
    ],
)
def test_dates_that_are_none(said: bytes, problem: str) -> None:
    """None, and told."""
    mail = parse_mail(b"Date: " + said + b"\n\n")
    assert (mail.date, mail.problems) == (None, (problem,))


def test_a_date_without_a_zone_is_utc() -> None:
    """Told where the zone is missing; -0000 is UTC by the standard."""
    mail = parse_mail(b"Date: Tue, 1 Dec 2026 14:30:00\n\n")
    assert mail.date == datetime(2026, 12, 1, 14, 30, tzinfo=UTC)
    assert mail.problems == ("Date 'Tue, 1 Dec 2026 14:30:00' has no time zone; read as UTC",)
    assert parse_mail(b"Date: Tue, 1 Dec 2026 14:30:00 -0000\n\n").problems == ()


def test_the_text_of_html() -> None:
    """Where a mail has nothing else, without scripts, styles and comments. Beside a plain form it is left away."""
    html = (
        b"<html><style>p {}</style><p>Dear &amp; all<br>10 &lt; 11</p><script>x<y</script><!-- no > --><div>end</div>"
    )
    part = b"Content-Type: text/html; charset=utf-8\n\n" + html
    assert parse_mail(part).text == "Dear & all\n10 < 11\nend"
    plain = b"Content-Type: text/plain\n\nplain"
    assert parse_mail(mixed(plain, part, kind=b"alternative")).text == "plain"
    assert parse_mail(mixed(plain, part)).text == "plain\nDear & all\n10 < 11\nend"


def test_what_a_database_cannot_hold_is_replaced_and_told() -> None:
    """NUL and other control characters, in text, headers and names."""
    mail = parse_mail(
        b"Subject: a\x00b\nDate: Tue, 1 Dec 2026 14:30:00 +0200\nContent-Type: text/plain; charset=utf-16-le\n\n"
        + "a\x00b\x07".encode("utf-16-le")
    )
    assert (mail.text, mail.subject) == ("a\u2400b\ufffd", "a b")
    assert mail.problems == ("the text holds characters that cannot be kept; they are replaced",)


def test_the_text_is_bounded_as_json() -> None:
    """Quotation marks take twice their room there."""
    mail = parse_mail(b"Date: Tue, 1 Dec 2026 14:30:00 +0200\n\n" + b'"' * 2000, MailLimits(text_bytes=1000))
    assert 400 <= len(mail.text) <= 500
    assert mail.problems == (f"the text of 2,000 bytes is cut at {len(mail.text)}",)
    mail = parse_mail(b"Content-Type: text/plain; charset=utf-8\n\n" + "€".encode() * 1000, MailLimits(text_bytes=1000))
    assert mail.text == "€" * 333
