"""What is in a document: its kind, its title and headings, its parts, and the passages that can be quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import PurePosixPath

PART = 8000
"""Longest part that a document is read in, in characters."""
QUOTED = 240
"""Longest quotation, in characters."""
TITLE = 120
_TABLES = {".csv": ",", ".tsv": "\t"}
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.*)\n(?:=|-){3,}[ \t]*$", re.MULTILINE)
# A sentence ends behind its mark and a blank, or behind a mark of a script that sets no blank.
_SENTENCE = re.compile(
    r"(?<=[.!?])[\"'\u201d\u2019)]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n|\n(?=\s*(?:#|[-*] |\d+\. ))"
)


def is_table(path: str) -> bool:
    """Whether a file is a table, by its name."""
    return PurePosixPath(path).suffix.lower() in _TABLES


def title_of(path: str, text: str) -> str:
    """A document's first heading, else its first line; a table's name."""
    name = PurePosixPath(path).stem.replace("-", " ").replace("_", " ")
    if is_table(path):
        return name[:TITLE]
    lines = (" ".join(line.split()) for line in (*headings_of(text)[:1], *text.splitlines()[:20]))
    return next((line for line in lines if line), name)[:TITLE]


def headings_of(text: str) -> list[str]:
    """The headings of a Markdown text, and lines that are underlined or in capitals."""
    capitals = [line.strip() for line in text.splitlines() if line.strip().isupper() and len(line.strip()) > 3]
    return [*_HEADING.findall(text), *_UNDERLINED.findall(text), *capitals]


def columns_of(path: str, text: str) -> list[str]:
    """The names of a table's columns."""
    first = next(csv.reader(StringIO(text), delimiter=_TABLES[PurePosixPath(path).suffix.lower()], strict=False), [])
    return [name.strip() for name in first]


def parts_of(text: str) -> list[str]:
    """The text in parts that are not too long, cut at the ends of lines where there are any."""
    parts: list[str] = []
    while len(text) > PART:
        end = text.rfind("\n", PART // 2, PART) + 1 or PART
        parts.append(text[:end])
        text = text[end:]
    return [*parts, text]


def passages_of(path: str, text: str) -> list[str]:
    """What can be quoted, word by word as it stands: the sentences of a text, the rows of a table."""
    found = text.splitlines()[1:] if is_table(path) else _SENTENCE.split(text)
    return [made for each in found for made in _cut(each.strip())]


def _cut(passage: str) -> Iterator[str]:
    while len(passage) > QUOTED:
        end = passage.rfind(" ", QUOTED // 2, QUOTED) + 1 or QUOTED
        yield passage[:end].strip()
        passage = passage[end:]
    if passage and not passage.startswith("#"):
        yield passage
