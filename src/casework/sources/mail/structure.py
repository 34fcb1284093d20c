"""A mail's bytes as a tree of parts, within bounds that no sender can exceed.

The standard library's parser takes any bytes, but not in any time and memory: millions of parts, headers of megabytes
and parts nested hundreds of times are its weak sides. What goes beyond the bounds here is not taken apart at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import EmailPolicy
from typing import Any, NamedTuple

MOST_PARTS = 1_000
MOST_HEADERS = 10_000
HEADER_LIMIT = 32 * 1024
"""Longest header that is read, in characters; the rest of it is cut."""
HEADERS_LIMIT = 1024 * 1024
"""All headers of all parts together, in characters."""
LINES_LIMIT = 2_000_000
WORK_LIMIT = 10_000_000
"""Lines times borders between parts: what the parser compares, at worst. About ten seconds."""
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")


class IntricateError(Exception):
    """The mail goes beyond a bound; its text says which."""


class Leaf(NamedTuple):
    """A part without parts of its own; whether it is one of several forms of the same."""

    part: Message
    alternative: bool


@dataclass
class Tally:
    """What has been met so far; raises where it is too much. `cut` names the headers that were shortened,
    `guessed` those whose character set is not known."""

    parts: int = 0
    headers: int = 0
    characters: int = 0
    read: dict[tuple[str, str], Any] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)

    def part(self, policy: Any = None) -> EmailMessage:
        """A new part."""
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise IntricateError(f"it has more than {MOST_PARTS} parts")
        return EmailMessage(policy)

    def header(self, name: str, value: str) -> str:
        """A header as it is kept: not too long."""
        self.headers += 1
        self.characters += min(len(value), HEADER_LIMIT)
        if self.headers > MOST_HEADERS or self.characters > HEADERS_LIMIT:
            raise IntricateError("its headers are too many or too long")
        if len(value) > HEADER_LIMIT:
            self.cut.append(name)
            value = value[:HEADER_LIMIT]
        return value

    def repaired(self, name: str, value: str) -> str:
        """A header whose bytes over 127, which stand as lone surrogates, are read: as UTF-8 where they are that."""
        try:
            said = value.encode("ascii", "surrogateescape")
        except UnicodeEncodeError:
            return value  # it was read before
        try:
            return said.decode("utf-8")
        except UnicodeError:
            self.guessed.append(name)
            return said.decode("cp1252", "replace")


class _Bounded(EmailPolicy):
    """The default policy, counting."""

    tally: Tally | None = None

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        assert self.tally is not None
        return name, self.tally.header(name, value)

    def header_fetch_parse(self, name: str, value: str) -> Any:
        assert self.tally is not None
        known = self.tally.read
        if (name, value) not in known:  # a part's type is asked for ten times, and is slow to read
            known[name, value] = super().header_fetch_parse(name, self.tally.repaired(name, value))
        return known[name, value]


def structure(raw: bytes, tally: Tally) -> EmailMessage:
    """The mail as a tree of parts.

    Raises:
        IntricateError: it goes beyond a bound.
        Exception: whatever the parser raises; it is known to be surprised by odd headers.
    """
    lines = max(raw.count(b"\n"), raw.count(b"\r"))
    if lines > LINES_LIMIT or lines * (1 + len(re.findall(rb"(?i)boundary", raw))) > WORK_LIMIT:
        raise IntricateError("it has too many lines, or borders between parts")
    return _parser(tally).parsebytes(raw)


def headers(raw: bytes, tally: Tally) -> EmailMessage:
    """The headers of the mail alone.

    Raises:
        IntricateError, Exception: as `structure`.
    """
    head = raw[: 2 * HEADERS_LIMIT]
    end = _END_OF_HEADERS.search(head)
    return _parser(tally).parsebytes(head[: end.end()] if end else head, headersonly=True)


def leaves(message: Message) -> Iterator[Leaf]:
    """The parts without parts, in order. A mail within the mail is one part, and is not looked into."""
    waiting = [Leaf(message, alternative=False)]
    while waiting:
        leaf = waiting.pop()
        payload = leaf.part.get_payload()
        if isinstance(payload, list) and kind(leaf.part).partition("/")[0] != "message":
            forms = kind(leaf.part) == "multipart/alternative" or leaf.alternative
            waiting += [Leaf(part, forms) for part in reversed(payload) if isinstance(part, Message)]
        else:
            yield leaf


def kind(part: Message) -> str:
    """Its media type, `text/plain` where it says none that can be read."""
    try:
        return part.get_content_type()
    except Exception:  # noqa: BLE001 - the parser of headers, on odd ones
        return "text/plain"


def content(part: Message) -> bytes:
    """What a part holds, decoded from its transfer encoding.

    Raises:
        Exception: whatever the library raises where a nested mail cannot be written again.
    """
    payload = part.get_payload()
    if isinstance(payload, list):
        return b"".join(_written(each) for each in payload if isinstance(each, Message))
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _written(part: Message) -> bytes:
    """A nested mail as its sender wrote it."""
    as_it_was: Any = {"refold_source": "none", "max_line_length": None}
    return part.as_bytes(policy=part.policy.clone(**as_it_was))


def _parser(tally: Tally) -> BytesParser[EmailMessage]:
    policy: Any = _Bounded(tally=tally, message_factory=tally.part)  # type: ignore[call-overload]  # its own field
    return BytesParser(policy=policy)
