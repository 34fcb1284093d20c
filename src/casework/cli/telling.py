"""How `demo` and `drill` speak: calm lines, in colour where a terminal reads them, nothing at all with `--json`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from casework.cli.output import safe, words

if TYPE_CHECKING:
    from casework.drills.promises import Promise, Report


class Teller:
    """Plain lines on stdout."""

    speaks = True

    def heading(self, text: str) -> None:
        """What comes now."""
        click.echo(f"\n== {safe(text)}")

    def say(self, text: str) -> None:
        """Something happened."""
        click.echo(f"   {safe(' '.join(text.split()))}")

    def promise(self, promise: Promise) -> None:
        """Whether a promise held."""
        found = f"  ({safe(promise.found)})" if promise.found else ""
        click.echo(f"   {'ok    ' if promise.held else 'FAILED'} {promise.text}{found}")

    def counts(self, report: Report) -> None:
        """What a scenario counted."""
        for name, value in report.counts.items():
            self.say(f"{name.replace('_', ' ')}: {words(value)}")

    def promises(self, report: Report) -> None:
        """All promises of a report."""
        for promise in report.promises:
            self.promise(promise)

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Rows under headings."""
        from casework.cli.output import table

        table(rows, columns, "")

    def verdict(self, reports: Sequence[Report], kept: Path | None) -> None:
        """The last line: whether everything held."""
        promises = [promise for report in reports for promise in report.promises]
        broken = sum(not promise.held for promise in promises)
        seconds = sum(report.seconds for report in reports)
        if kept is None:
            self.heading(f"Every promise held ({len(promises)} of {len(promises)}), in {seconds:.0f} s")
        else:
            self.heading(f"FAILED: {broken} of {len(promises)} promises did not hold. Everything is kept in {kept}")


class ColourTeller(Teller):
    """The same through rich."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)

    def heading(self, text: str) -> None:
        """What comes now."""
        self._print(f"\n{safe(text)}", "bold")

    def say(self, text: str) -> None:
        """Something happened."""
        self._print(f"  {safe(' '.join(text.split()))}", "")

    def promise(self, promise: Promise) -> None:
        """Whether a promise held."""
        mark, style = ("✓", "green") if promise.held else ("✗ FAILED", "bold red")
        found = f"  ({safe(promise.found)})" if promise.found else ""
        self._print(f"  {mark} {promise.text}{found}", style)

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Rows under headings."""
        from rich.table import Table
        from rich.text import Text

        from casework.cli.output import cell

        made = Table(*columns.values(), box=None, padding=(0, 2), header_style="dim")
        for row in rows:
            made.add_row(*(Text(cell(row.get(key))) for key in columns))
        self._console.print(made)

    def _print(self, text: str, style: str) -> None:
        self._console.print(text, style=style, markup=False, soft_wrap=True)


class Silence(Teller):
    """Nothing: stdout belongs to one JSON object."""

    speaks = False

    def heading(self, text: str) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def promise(self, promise: Promise) -> None:
        """Nothing."""

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Nothing."""


def teller(*, quiet: bool) -> Teller:
    """The voice for where stdout goes."""
    if quiet:
        return Silence()
    return ColourTeller() if sys.stdout.isatty() else Teller()
