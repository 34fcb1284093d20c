"""The rows of a CSV file. A file that cannot be read to its end is at fault as a whole; a row can be for itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from casework.sources.folder.files import Bad, Content, Row
from casework.sources.folder.settings import FolderSettings
from casework.values import clean


def rows_of(found: Content, settings: FolderSettings) -> list[Row | Bad] | Bad:
    """Each row, the bad ones among them; or why the file as a whole is bad."""
    file = found.file
    try:
        text = found.content.decode(settings.encoding)
    except UnicodeDecodeError as error:
        line = found.content.count(b"\n", 0, error.start) + 1
        why = f"is not {settings.encoding}: byte {error.start}, in line {line}, cannot be read"
        return Bad(file.name, file.mark, 0, why)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=settings.delimiter, strict=True)
    try:
        headings = [heading.strip() for heading in next(lines, [])]
        problem = _problem(headings)
        if problem:
            return Bad(file.name, file.mark, 0, problem)
        return list(_rows(found, _Headings(headings), lines))
    except csv.Error as error:
        return Bad(file.name, file.mark, 0, f"is no CSV: {error}, in the row that ends at line {lines.line_num}")


@dataclass(frozen=True)
class _Headings:
    names: list[str]

    def row(self, found: Content, number: int, fields: list[str]) -> Row | Bad:
        if len(fields) != len(self.names):
            why = f"has {len(fields)} fields, and the heading {len(self.names)}"
            return Bad(found.file.name, found.file.mark, number, why)
        values = {name: str(clean(field).value) for name, field in zip(self.names, fields, strict=True)}
        return Row(found.file, number, values)


def _rows(found: Content, headings: _Headings, lines: Iterator[list[str]]) -> Iterator[Row | Bad]:
    for number, fields in enumerate((fields for fields in lines if fields), start=1):
        yield headings.row(found, number, fields)


def _problem(headings: list[str]) -> str | None:
    if not headings:
        return "has no heading: its first line is empty"
    if "" in headings:
        return f"has a blank heading at column {headings.index('') + 1}"
    twice = next((name for name in headings if headings.count(name) > 1), None)
    return f"has the heading {twice[:50]!r} twice" if twice else None
