"""Pieces of Markdown that the generated pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GENERATED = "<!-- Written from the code by `make docs`; changes by hand are lost. -->"


def cell(text: object) -> str:
    """`text` on one line, with nothing in it that would end a cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; every row has as many cells as there are headings."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in line)} |".replace("|  |", "| |") for line in lines)
