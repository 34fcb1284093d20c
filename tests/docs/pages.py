"""The pages, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
"""Every page, decisions included."""

_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"title=(\S+)")


@dataclass(frozen=True)
class Block:
    """A fenced block. `title` is the file that it is; `line` that of its first line of text."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def where(self) -> str:
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    """The page as messages call it."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        title = _TITLE.search(rest)
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(page, line, language, title[1] if title else None, match["text"]))
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in these languages."""
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def write_files(page: Path, folder: Path) -> None:
    """Write the page's titled blocks as the files they are; those that change a file leave it alone."""
    for block in blocks(page):
        if block.title and block.language != "diff":
            (folder / block.title).write_text(block.text, encoding="utf-8")
