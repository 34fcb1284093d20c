"""Bytes of a mail as text: character sets as they are named and as they are, and the text of HTML."""

from __future__ import annotations

import codecs
import re
from html import unescape
from typing import NamedTuple

_NOT_OF_MAILS = frozenset({"punycode", "unicode-escape", "raw-unicode-escape"})
"""Codecs of Python from bytes to text that are no character sets; some take quadratic time."""
_SILENT = frozenset({"script", "style", "head", "title"})
_TAG = re.compile(r"</?([a-z][a-z0-9]*)")
_BREAKING = frozenset({"br", "p", "div", "tr", "li", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"})


class Decoded(NamedTuple):
    """A text, and what was wrong with it."""

    text: str
    problem: str | None = None


def decoded(content: bytes, charset: str | None) -> Decoded:
    """`content` as text. Without a character set it is UTF-8 where it is that, else Windows-1252, and that is told."""
    if charset is None or charset.lower() in ("us-ascii", "ascii", "utf-8", "utf8"):
        return _guessed(content, charset)
    known = _codec(charset)
    if known is None:
        found = _guessed(content, None)
        return Decoded(found.text, f"the character set {charset[:50]!r} is not known; read as {_name(content)}")
    try:
        return Decoded(content.decode(known))
    except (UnicodeError, ValueError):
        problem = f"it is not all {charset[:50]}; what cannot be read is replaced"
        return Decoded(content.decode(known, "replace"), problem)


def _guessed(content: bytes, charset: str | None) -> Decoded:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        told = f"it is not {charset}" if charset else "it names no character set and is not UTF-8"
        return Decoded(content.decode("cp1252", "replace"), f"{told}; read as Windows-1252")
    named = charset is not None and "ascii" in charset.lower() and not content.isascii()
    return Decoded(text, f"it is not {charset}; read as UTF-8" if named else None)


def _name(content: bytes) -> str:
    return "Windows-1252" if _guessed(content, None).problem else "UTF-8"


def _codec(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
        if name not in _NOT_OF_MAILS:
            b"    ".decode(name, "replace")  # refuses what turns bytes into bytes
            return name
    except (LookupError, ValueError, TypeError):
        pass
    return None


def text_of_html(html: str) -> str:
    """What a reader sees of HTML, a line for each block; never its scripts and styles. In linear time, whatever it is.

    The library's parser was not used: it takes a minute for what a sender can write in some kilobytes.
    """
    pieces: list[str] = []
    low, place = html.lower(), 0
    while (start := html.find("<", place)) >= 0:
        pieces.append(html[place:start])
        tag = _TAG.match(low, start)
        if tag is None and not low.startswith(("<!", "<?"), start):
            pieces.append("<")
            place = start + 1
            continue
        if tag and tag[1] in _BREAKING:
            pieces.append("\n")
        end = _behind(low, start, tag[0] if tag else "")
        if end is None:  # what is not closed is a tag to the end
            place = len(html)
            break
        place = end
    pieces.append(html[place:])
    lines = (" ".join(line.split()) for line in unescape("".join(pieces)).split("\n"))
    return "\n".join(line for line in lines if line)


def _behind(low: str, start: int, tag: str) -> int | None:
    """Where a tag, a comment, or a part that is not shown ends; None where it does not."""
    if low.startswith("<!--", start):
        end = low.find("-->", start + 4)
        return end + 3 if end >= 0 else None
    end = low.find(">", start)
    if end >= 0 and tag[1:] in _SILENT and low[end - 1] != "/":
        end = low.find(f"</{tag[1:]}", end)
        end = low.find(">", end) if end >= 0 else -1
    return end + 1 if end >= 0 else None
