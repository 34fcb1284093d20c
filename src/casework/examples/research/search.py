"""The three searches, each over another side of the same folder, and what joins their findings.

All of them only read, and only below the run's own folder: it comes from the run's input, never from an argument, so no
model can name another. What cannot be read is told beside the hits and fails nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from casework.agents import ToolContext, tool
from casework.examples.research.documents import headings_of, is_table, title_of
from casework.examples.research.folder import Folder, UnreadableError, source_of
from casework.examples.research.ranking import ranked
from casework.examples.research.settings import ResearchSettings
from casework.examples.research.words import asked

MAX_HITS = 200
"""Most hits of one search, and most documents of a run."""
MAX_CHARACTERS = 16 * 1024 * 1024
"""Most text that one search reads, in characters."""
TOLD = 50
"""Files left out that are named; the others are counted."""
_SMOOTHING = 60

Question = Annotated[str, Field(min_length=1, max_length=500, description="What is asked, in one line.")]


@dataclass(frozen=True)
class LeftOut:
    """A file that was not looked at or not used, and why."""

    path: str
    why: str


@dataclass(frozen=True)
class Hit:
    """A document that was found. `digest` is the same for the same text."""

    path: str
    title: str
    digest: str


@dataclass(frozen=True)
class Found:
    """What one search found, the best first."""

    hits: list[Hit] = field(default_factory=list)
    searched: int = 0
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """A document to be read. `source` is the folder it lies in."""

    path: str
    title: str
    source: str
    found_by: list[str]


@dataclass(frozen=True)
class Hits:
    """What all searches found together.

    `more` counts documents beyond the limit, `untold` files that were left out and are not named.
    """

    question: str
    documents: list[Document]
    left_out: list[LeftOut]
    more: int
    untold: int


def folder_of(ctx: ToolContext) -> Folder:
    """The folder that the run may look in.

    Raises:
        UnreadableError: it is not there, or lies outside of the root.
    """
    return Folder.at(ResearchSettings.load().root, str(ctx.input.get("folder") or ""))


@tool(effects=False, timeout=50)
def search_texts(ctx: ToolContext, question: Question) -> Found:
    """Search the full text of all documents that are no tables; the best first."""
    return _search(folder_of(ctx), question, lambda path: not is_table(path), lambda _path, text: text)


@tool(effects=False, timeout=50)
def search_headings(ctx: ToolContext, question: Question) -> Found:
    """Search the titles, headings and names of all documents; the best first."""

    def said(path: str, text: str) -> str:
        return " ".join([path, title_of(path, text), *headings_of(text)])

    return _search(folder_of(ctx), question, lambda _path: True, said)


@tool(effects=False, timeout=50)
def search_tables(ctx: ToolContext, question: Question) -> Found:
    """Search the columns and rows of all tables (CSV, TSV); the best first."""
    return _search(folder_of(ctx), question, is_table, lambda path, text: f"{title_of(path, text)}\n{text}")


@tool(effects=False)
def join_hits(ctx: ToolContext, question: Question, found: dict[str, Found]) -> Hits:
    """Join what the searches found: each document once, the best first, no more than the run wants."""
    limit = min(int(ctx.input.get("limit") or 20), MAX_HITS)
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    by: dict[str, list[str]] = {}
    for name, each in found.items():
        for rank, hit in enumerate(each.hits):
            hits[hit.path] = hit
            scores[hit.path] = scores.get(hit.path, 0.0) + 1 / (_SMOOTHING + rank)
            by.setdefault(hit.path, []).append(name)
    order = sorted(scores, key=lambda path: (-scores[path], path))
    once = list(_without_copies([hits[path] for path in order]))
    kept = [hit for hit, same in once if same is None]
    copies = [LeftOut(hit.path, f"the same text as {same}") for hit, same in once if same is not None]
    left_out = list(dict.fromkeys([*copies, *(each for one in found.values() for each in one.left_out)]))
    documents = [Document(hit.path, hit.title, source_of(hit.path), by[hit.path]) for hit in kept[:limit]]
    return Hits(question, documents, left_out[:TOLD], len(kept[limit:]), len(left_out[TOLD:]))


def _search(folder: Folder, question: str, wanted: Callable[[str], bool], said: Callable[[str, str], str]) -> Found:
    listing = folder.listing()
    left_out = [LeftOut(path, why) for path, why in listing.left_out]
    texts = dict(_texts(folder, [path for path in listing.paths if wanted(path)], left_out))
    order = ranked(asked(question), {path: said(path, text) for path, text in texts.items()})
    hits = [Hit(path, title_of(path, texts[path]), _digest(texts[path])) for path, _ in order[:MAX_HITS]]
    return Found(hits, len(texts), left_out[:MAX_HITS])


def _texts(folder: Folder, paths: list[str], left_out: list[LeftOut]) -> Iterator[tuple[str, str]]:
    left = MAX_CHARACTERS
    for path in paths:
        try:
            text = folder.read(path)
        except UnreadableError as error:
            left_out.append(LeftOut(path, str(error)))
            continue
        left -= len(text)
        if left < 0:
            left_out.append(LeftOut(path, f"only {MAX_CHARACTERS:,} characters are searched"))
            continue
        yield path, text


def _without_copies(hits: list[Hit]) -> Iterator[tuple[Hit, str | None]]:
    """Each hit, with the path of an earlier one that has the same text."""
    first: dict[str, str] = {}
    for hit in hits:
        same = first.setdefault(hit.digest, hit.path)
        yield hit, None if same == hit.path else same


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
