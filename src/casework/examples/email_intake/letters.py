"""Letters and reports as PDF. The same content gives the same bytes, so a repeated task writes the same file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpdf import FPDF

_FONT = "helvetica"
_SAID = {
    "approved": "We are glad to tell you that your application is approved.",
    "declined": "We are sorry to tell you that your application is declined.",
}


def letter(entry: Mapping[str, str]) -> bytes:
    """The letter about one decision; `entry` as `submission.entry_of` makes it."""
    page = _page(f"Letter {entry['number']} of {entry['day']}", entry["day"])
    _line(page, _SAID.get(entry["outcome"], f"Your application was decided: {entry['outcome']}."), space=10)
    for heading, name in (
        ("Reference", "reference"),
        ("Applicant", "applicant_id"),
        ("Amount in US dollars", "amount"),
        ("Purpose", "purpose"),
        ("Decision", "outcome"),
        ("Note", "repaired"),
    ):
        if entry.get(name):
            _line(page, f"{heading}: {entry[name]}")
    return bytes(page.output())


def report(day: str, entries: Iterable[Mapping[str, str]]) -> bytes:
    """The report of a day: a line for each letter, and how many there are of each outcome."""
    page = _page(f"Decisions of {day}", day)
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry["outcome"]] = counts.get(entry["outcome"], 0) + 1
        _line(page, f"{entry['number']}  {entry['reference']}  {entry['outcome']}  {entry['amount']}", size=9)
    _line(page, f"Letters: {sum(counts.values())}", space=6)
    for outcome, count in sorted(counts.items()):
        _line(page, f"{outcome}: {count}")
    return bytes(page.output())


def _page(title: str, day: str) -> FPDF:
    from fpdf import FPDF  # noqa: PLC0415 - the extra `documents` is needed when the first letter is written

    made = FPDF()
    made.set_creation_date(datetime.fromisoformat(day).replace(tzinfo=UTC))
    made.set_title(title)
    made.add_page()
    made.set_font(_FONT, style="B", size=16)
    made.multi_cell(0, 10, title, new_x="LMARGIN", new_y="NEXT")
    return made


def _line(page: FPDF, text: str, size: int = 11, space: float = 0) -> None:
    """A line; what the built-in font has not is written as a question mark."""
    page.set_font(_FONT, size=size)
    if space:
        page.ln(space)
    page.multi_cell(0, 6, text.encode("latin-1", "replace").decode("latin-1"), new_x="LMARGIN", new_y="NEXT")
