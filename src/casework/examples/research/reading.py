"""Reading documents, sorting what was noted of them, and checking that each quotation truly stands where it is said."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from casework.agents import ToolContext, tool
from casework.errors import ToldError
from casework.examples.research.documents import is_table, parts_of, title_of
from casework.examples.research.folder import Folder, UnreadableError, source_of
from casework.examples.research.search import Document, LeftOut, folder_of

MAX_NOTES = 40
"""Most notes of one source that are weighed, the more relevant first."""
SHORTEST = 5
"""Shortest quotation, in characters: what is shorter stands in any file."""
_RELEVANCE = ("high", "some", "none", "unreadable")

Path = Annotated[str, Field(min_length=1, max_length=1000, description="A document's path, as the search gave it.")]
Part = Annotated[int, Field(ge=1, le=1000, description="Which part of a long document, from 1.")]


@dataclass(frozen=True)
class Answer:
    """What a reader says of the document that it was given."""

    relevance: Literal["high", "some", "none", "unreadable"]
    summary: str
    quotations: list[str]


@dataclass(frozen=True)
class Note:
    """What was noted of a document."""

    path: str
    relevance: str
    summary: str
    quotations: list[str]


@dataclass(frozen=True)
class Group:
    """The notes of one source, the more relevant first."""

    source: str
    notes: list[Note]


@dataclass(frozen=True)
class Sorted:
    """Notes by source, and the documents that bring nothing."""

    groups: list[Group]
    set_aside: list[LeftOut]


@dataclass(frozen=True)
class Claim:
    """A quotation and where it is said to stand."""

    path: str
    quotation: str


@dataclass(frozen=True)
class Finding:
    """A quotation that stands in the file, with the line it begins in, from 1."""

    path: str
    quotation: str
    line: int


@dataclass(frozen=True)
class Review:
    """A source as it was weighed: what it brings, and what was refused."""

    source: str
    weight: str
    why: str
    findings: list[Finding] = field(default_factory=list)
    refused: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True)
class Read:
    """A part of a document, from 1 to `parts`."""

    path: str
    title: str
    kind: Literal["text", "table"]
    part: int
    parts: int
    text: str


@tool(effects=False, timeout=20)
def read_document(ctx: ToolContext, path: Path, part: Part = 1) -> Read:
    """Read a document that the search found; a long one has several parts."""
    text = folder_of(ctx).read(path)
    parts = parts_of(text)
    if part > len(parts):
        raise ToldError(f"{path!r} has {len(parts)} parts; there is no part {part}.")
    kind: Literal["text", "table"] = "table" if is_table(path) else "text"
    return Read(path, title_of(path, text), kind, part, len(parts), parts[part - 1])


@tool(effects=False)
def sort_notes(documents: list[Document], notes: list[Answer | None]) -> Sorted:
    """Sort what readers said by source: one answer for each document, in their order, null where a reader failed."""
    by_source: dict[str, list[Note]] = {}
    set_aside: list[LeftOut] = []
    for document, note in zip(documents, notes, strict=True):
        why = _useless(note)
        if note is None or why is not None:
            set_aside.append(LeftOut(document.path, why or ""))
            continue
        made = Note(document.path, note.relevance, note.summary, note.quotations)
        by_source.setdefault(source_of(document.path), []).append(made)
    for each in by_source.values():
        each.sort(key=lambda note: _RELEVANCE.index(note.relevance))
        set_aside += [
            LeftOut(note.path, f"only {MAX_NOTES} documents of a source are weighed") for note in each[MAX_NOTES:]
        ]
    return Sorted([Group(source, each[:MAX_NOTES]) for source, each in by_source.items()], set_aside)


@tool(effects=False, timeout=50)
def check_quotations(ctx: ToolContext, source: str, weight: str, why: str, claims: list[Claim]) -> Review:
    """Check that each quotation stands in its file, blanks and line ends aside; give those that do, with the line."""
    folder = folder_of(ctx)
    findings: list[Finding] = []
    refused: list[LeftOut] = []
    for claim in claims:
        made = _checked(folder, source, claim)
        if isinstance(made, Finding):
            findings.append(made)
        else:
            refused.append(made)
    return Review(source, weight if findings else "none", why, list(dict.fromkeys(findings)), refused)


@tool(effects=False)
def set_source_aside(source: str, why: str) -> Review:
    """A source that could not be weighed or checked: it brings nothing, and the report says why."""
    return Review(source, "none", f"could not be reviewed: {why[:500]}")


def _useless(note: Answer | None) -> str | None:
    """Why a note brings nothing; None where it does."""
    if note is None:
        return "it could not be read: the reader failed"
    if note.relevance == "unreadable":
        return note.summary
    return None if note.relevance in ("high", "some") else "says nothing of the question"


def _checked(folder: Folder, source: str, claim: Claim) -> Finding | LeftOut:
    shown = f"quoted was {claim.quotation[:80]!r}"
    if source_of(claim.path) != source:
        return LeftOut(claim.path, f"it does not belong to {source}; {shown}")
    if len(claim.quotation.strip()) < SHORTEST:
        return LeftOut(claim.path, f"a quotation has at least {SHORTEST} characters; {shown}")
    try:
        line = line_of(claim.quotation, folder.read(claim.path))
    except UnreadableError as error:
        return LeftOut(claim.path, f"{error} {shown}")
    if line is None:
        return LeftOut(claim.path, f"this does not stand there; {shown}")
    return Finding(claim.path, " ".join(claim.quotation.split()), line)


def line_of(quotation: str, text: str) -> int | None:
    """The line, from 1, in which a quotation begins in a text, blanks and line ends aside; None where it is not."""
    words = [re.escape(word) for word in unicodedata.normalize("NFC", quotation).split()]
    text = unicodedata.normalize("NFC", text)
    found = re.search(r"\s+".join(words), text) if words else None
    return text.count("\n", 0, found.start()) + 1 if found else None
