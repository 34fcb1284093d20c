"""A mail as a plain value. Any bytes are one: what cannot be read of them is told in `problems`, and nothing is raised.

What is too large is left out and told. What is too intricate to be taken apart keeps its headers, and is itself its
one attachment. Texts hold nothing that a database cannot hold.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from casework.sources.mail.structure import IntricateError, Leaf, Tally, content, headers, kind, leaves, structure
from casework.sources.mail.text import decoded, text_of_html
from casework.values import clean, dumps

MOST_PROBLEMS = 50
MOST_ADDRESSES = 200
ADDRESSES_LIMIT = 8 * 1024
"""What is read of a header with addresses, in characters; the parser takes seconds for odd ones that are longer."""
NAME_LIMIT = 200
"""Longest name of an attachment, in characters."""
MEDIA_LIMIT = 100
PROBLEM_LIMIT = 300
LINE_LIMIT = 1_000
"""Longest subject and longest address, in characters."""
_ID = re.compile(r"<[^<>]+>")
_ID_LIMIT = 500
_CONTROL = re.compile(r"[\x01-\x08\x0b\x0e-\x1f\x7f]")
_ODD = re.compile(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and marks that turn the direction of text: a name that shows as another."""


@dataclass(frozen=True, slots=True)
class MailLimits:
    """What is read of a mail, in bytes: each attachment, and its text as JSON."""

    attachment_bytes: int = 10 * 1024 * 1024
    text_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Whom a mail is from or to; `name` may be empty. An address that cannot be read stands as it was written."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is not the text. `content` is None where it was left out; `size` is in bytes."""

    name: str
    media_type: str
    size: int
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """What a mail says. `date` is a UTC instant; `key` tells it from others."""

    key: str
    """Its Message-ID, or `sha256:` and the hash of its bytes where it has none."""
    message_id: str | None
    sender: Address | None
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    subject: str
    date: datetime | None
    text: str
    attachments: tuple[Attachment, ...]
    problems: tuple[str, ...]


def parse_mail(raw: bytes, limits: MailLimits | None = None, *, problems: Iterable[str] = ()) -> Mail:
    """The mail that `raw` is; `problems` are those that are known of it before."""
    notes = Notes()
    for each in problems:
        notes.add(each)
    return _Parsing(raw, limits or MailLimits(), notes).mail()


@dataclass
class Notes:
    """Problems, each once, in order."""

    found: dict[str, None] = field(default_factory=dict)
    more: int = 0

    def add(self, problem: str) -> None:
        """One more, unless it is known."""
        text = str(clean(_ODD.sub(" ", problem)).value)[:PROBLEM_LIMIT]
        if text not in self.found and len(self.found) >= MOST_PROBLEMS:
            self.more += 1
        else:
            self.found.setdefault(text)

    def all(self) -> tuple[str, ...]:
        """All of them, and how many more there were."""
        return (*self.found, *((f"{self.more} more problems",) if self.more else ()))


class _Parsing:
    """One mail on its way from bytes to a value."""

    def __init__(self, raw: bytes, limits: MailLimits, notes: Notes) -> None:
        self._raw, self._limits, self._notes = raw, limits, notes
        self._tally = Tally()
        self._message, self._whole = self._parsed()
        self._texts: list[tuple[bool, bool, str]] = []
        """Whether it was HTML, whether one of several forms, and the text."""
        self._attachments: list[Attachment] = []

    def mail(self) -> Mail:
        self._take_apart()
        said = self._said("message-id")
        message_id = _message_id(said)
        if said and message_id is None:
            self._notes.add("Message-ID is blank")
        senders = self._addresses("from")
        if len(senders) > 1:
            self._notes.add(f"From names {len(senders)} addresses; the first counts")
        return Mail(
            key=message_id or f"sha256:{hashlib.sha256(self._raw).hexdigest()}",
            message_id=message_id,
            sender=senders[0] if senders else None,
            to=self._addresses("to"),
            cc=self._addresses("cc"),
            subject=self._subject(),
            date=self._date(),
            text=self._text(),
            attachments=tuple(self._attachments),
            problems=self._problems(),
        )

    def _problems(self) -> tuple[str, ...]:
        """Asked for last: reading a header may add to them."""
        for name in dict.fromkeys(self._tally.cut):
            self._notes.add(f"header {name[:50]} is too long and was cut")
        for name in dict.fromkeys(self._tally.guessed):
            self._notes.add(f"header {name[:50]} is neither ASCII nor UTF-8; read as Windows-1252")
        return self._notes.all()

    def _parsed(self) -> tuple[EmailMessage, bool]:
        """The mail with its parts; with its headers alone, or with nothing, where it cannot be taken apart."""
        for read in (structure, headers):
            try:
                return read(self._raw, self._tally), read is structure
            except IntricateError as error:
                why = str(error)
            except (Exception, RecursionError) as error:  # noqa: BLE001 - the parser, on odd bytes
                why = f"its parser gave up ({type(error).__name__})"
            what = "cannot be taken apart" if read is structure else "has no headers that can be read"
            self._notes.add(f"the mail {what}: {why}")
            self._tally = Tally()
        return EmailMessage(), False

    def _take_apart(self) -> None:
        if not self._whole:
            self._attach("message.eml", "message/rfc822", self._raw)
            return
        for number, leaf in enumerate(leaves(self._message), start=1):
            try:
                self._take(number, leaf)
            except (Exception, RecursionError) as error:  # noqa: BLE001 - the library, on odd parts
                self._notes.add(f"part {number} cannot be read ({type(error).__name__}); it is kept as it stands")
                found = self._quietly(partial(content, leaf.part), b"", f"the content of part {number}")
                self._attach(f"part-{number}.bin", "application/octet-stream", found)
        self._defects(self._message, "the mail")

    def _take(self, number: int, leaf: Leaf) -> None:
        part, media = leaf.part, kind(leaf.part)
        name = self._quietly(part.get_filename, None, f"the name of part {number}")
        is_attachment = self._quietly(part.get_content_disposition, None, f"part {number}") == "attachment"
        found = content(part)
        if part is not self._message:
            self._defects(part, f"part {number}")
        if is_attachment or name or (media not in ("text/plain", "text/html") and not media.startswith("multipart/")):
            self._attach(_file_name(name, number, media), media, found)
        else:
            self._body(number, media == "text/html", leaf.alternative, found, part)

    def _body(self, number: int, html: bool, alternative: bool, found: bytes, part: Message) -> None:
        charset = self._quietly(part.get_content_charset, None, f"the character set of part {number}")
        text, problem = decoded(found, charset)
        if problem:
            self._notes.add(f"text of part {number}: {problem}")
        text = text_of_html(text) if html else text.replace("\r\n", "\n")
        self._texts.append((html, alternative, text))

    def _text(self) -> str:
        """The plain texts; HTML where there is none, or where it is no other form of them."""
        plain = any(text.strip() for html, _, text in self._texts if not html)
        chosen = [text for html, alternative, text in self._texts if not (html and alternative and plain)]
        return self._bounded("\n".join(text.strip("\n") for text in chosen if text.strip()))

    def _bounded(self, text: str) -> str:
        """The text as far as its JSON has room."""
        whole = self._cleaned(_CONTROL.sub("\ufffd", text.replace("\r", "\n").replace("\f", "\n")), "the text")
        limit, size = self._limits.text_bytes, len(whole.encode())
        cut = whole.encode()[:limit].decode("utf-8", "ignore") if size > limit else whole
        while (over := len(dumps(cut).encode()) - 2 - limit) > 0:
            cut = cut[: -max(1, over // 4)]
        if cut != whole:
            self._notes.add(f"the text of {size:,} bytes is cut at {len(cut.encode()):,}")
        return cut

    def _attach(self, name: str, media: str, found: bytes) -> None:
        kept: bytes | None = found
        if len(found) > self._limits.attachment_bytes:
            limit = self._limits.attachment_bytes
            self._notes.add(f"attachment {name!r} of {len(found):,} bytes is left out: over the limit of {limit:,}")
            kept = None
        media = self._cleaned(_ODD.sub("", media), "a media type")[:MEDIA_LIMIT]
        self._attachments.append(Attachment(self._cleaned(name, "a name"), media, len(found), kept))

    def _addresses(self, name: str) -> tuple[Address, ...]:
        said = ", ".join(self._raw_values(name))
        raw = said[:ADDRESSES_LIMIT]
        if raw != said:
            self._notes.add(f"{name.title()} is read as far as {ADDRESSES_LIMIT:,} characters")
        found = self._quietly(partial(self._read_addresses, name, raw), [Address("", raw)], name.title())
        if len(found) > MOST_ADDRESSES:
            self._notes.add(f"{name.title()} has more than {MOST_ADDRESSES} addresses; those are listed")
        return tuple(
            Address(self._line(each.name, name), self._line(each.address, name)) for each in found[:MOST_ADDRESSES]
        )

    def _read_addresses(self, name: str, raw: str) -> list[Address]:
        header: Any = self._message.policy.header_fetch_parse(name, raw)
        found = [Address(each.display_name or "", each.addr_spec) for each in header.addresses]
        return found or ([Address("", raw)] if raw.strip() else [])

    def _subject(self) -> str:
        raw = self._said("subject")
        text = self._quietly(lambda: str(self._message.policy.header_fetch_parse("subject", raw)), raw, "Subject")
        return self._line(text, "subject")

    def _date(self) -> datetime | None:
        said = self._said("date")
        if not said.strip():
            self._notes.add("it has no date")
            return None
        try:
            moment = parsedate_to_datetime(said.strip())
            if moment.tzinfo is None and "-0000" not in said:
                self._notes.add(f"Date {said.strip()[:100]!r} has no time zone; read as UTC")
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except Exception:  # noqa: BLE001 - the library, on odd dates
            self._notes.add(f"Date {said.strip()[:100]!r} is no date")
            return None

    def _said(self, name: str) -> str:
        """The header as it was written; the first, where there are several."""
        found = self._raw_values(name)
        if len(found) > 1:
            self._notes.add(f"header {name.title()} stands {len(found)} times; the first counts")
        return found[0] if found else ""

    def _raw_values(self, name: str) -> list[str]:
        found = self._message.raw_items()
        return [self._tally.repaired(key, str(value)) for key, value in found if key.lower() == name]

    def _line(self, text: str, where: str) -> str:
        return self._cleaned(" ".join(_ODD.sub(" ", text).split()), f"header {where.title()}")[:LINE_LIMIT]

    def _cleaned(self, text: str, where: str) -> str:
        made = clean(text)
        if made.replaced:
            self._notes.add(f"{where} holds characters that cannot be kept; they are replaced")
        return str(made.value)

    def _defects(self, part: Message, where: str) -> None:
        for defect in part.defects:
            self._notes.add(f"{where}: {_told(defect)}")

    def _quietly(self, work: Callable[[], Any], otherwise: Any, what: str) -> Any:
        try:
            return work()
        except (Exception, RecursionError) as error:  # noqa: BLE001 - the parser of headers, on odd ones
            self._notes.add(f"{what} cannot be read ({type(error).__name__})")
            return otherwise


def _message_id(said: str) -> str | None:
    """The id without the blanks of folded lines; a hash of one that is too long."""
    text = str(clean(_ODD.sub("", "".join(said.split()))).value)
    found = _ID.search(text)
    text = found[0] if found else text
    return text[:_ID_LIMIT] + hashlib.sha256(text.encode()).hexdigest() if len(text) > _ID_LIMIT else text or None


def _file_name(name: object, number: int, media: str) -> str:
    """A name to show, never a path; with a fitting ending where the part has none."""
    text = _ODD.sub("", str(name or "")).replace("\\", "/").rpartition("/")[2].strip().lstrip(".")
    if text:
        stem, dot, ending = text.rpartition(".")
        return text if len(text) <= NAME_LIMIT else f"{(stem or text)[: NAME_LIMIT - 20]}{dot}{ending[:19]}"
    ending = ".eml" if media == "message/rfc822" else mimetypes.guess_extension(media) or ".bin"
    return f"part-{number}{ending}"


def _told(defect: object) -> str:
    """A defect in the library's own words."""
    text = (type(defect).__doc__ or type(defect).__name__).strip().partition("\n")[0]
    return text[:1].lower() + text[1:].rstrip(".")
