"""`casework drill storm`: many cases while workers are killed every few seconds, then the servers too."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.promises import Report
    from casework.drills.stack import LocalStack
    from casework.drills.storm_cases import Case, StormPlan
    from casework.rehearsal import Rehearsal

CLEAR = "\r\x1b[2K"
"""Back to the start of a terminal's line, and nothing on it."""
SAY_EVERY_S = 10.0
"""How often the progress is a line of its own, where stdout is no terminal."""


@click.command()
@app_option
@click.option(
    "--cases", type=click.IntRange(2, 100_000), default=40, show_default=True, help="Cases of the first part."
)
@click.option(
    "--inputs",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take them from a CSV, JSON or JSONL file, as `runs start -f` reads it; a CSV file also holds their evidence.",
)
@click.option("--side-by-side", type=click.IntRange(1, 100), default=8, show_default=True, help="Cases under way.")
@click.option(
    "--kill-every",
    type=click.FloatRange(0.5, 3600),
    default=3.0,
    show_default=True,
    help="Seconds between two kills of a worker.",
)
@json_option
def storm(
    reference: str | None, cases: int, path: Path | None, side_by_side: int, kill_every: float, as_json: bool
) -> int:
    """Work many cases while a worker is killed every few seconds; then kill API, PostgreSQL and Temporal.

    Some more cases are under way when each of the three is killed (SIGKILL) and started again. At the end every case
    must await its review, with nothing missing and nothing twice: in the rows, at the destination, and by what the
    workers wrote down. The stack's folder is kept where a promise failed.
    """
    from casework.cli.rehearsing import SHIPPED, rehearsed, temporary_home
    from casework.cli.telling import teller
    from casework.drills.storm_cases import StormPlan, needed

    wanted, rehearsal = rehearsed(reference, SHIPPED)
    rehearsal, given = _cases(wanted, rehearsal, path, needed(cases, side_by_side))
    plan = StormPlan(given, side_by_side, kill_every)
    voice = teller(quiet=as_json)
    with temporary_home("casework-storm-") as home:
        report = asyncio.run(_storm(home.stack_maker(wanted), rehearsal, home.path, plan, voice))
        home.keep(not report.held)
    kept = None if report.held else home.path
    if as_json:
        emit_json({"drill": "storm", "app": wanted, **report.to_plain(), "kept": kept and str(kept)})
    else:
        voice.verdict([report], kept)
    return exits.OK if report.held else exits.FAILED


def _cases(reference: str, rehearsal: Rehearsal, path: Path | None, number: int) -> tuple[Rehearsal, tuple[Case, ...]]:
    """`number` cases, and the rehearsal whose destination knows them.

    Raises:
        InputError: the file cannot be read, a row is at fault, or there are too few.
    """
    from casework.drills import storm_cases

    if path is None:
        return rehearsal, storm_cases.rehearsed(rehearsal, number)
    from casework.app import load_app
    from casework.cli import run_input

    schema = load_app(reference).workflow(rehearsal.workflow).workflow.spec.input or {}
    source = run_input.read(path, schema, {}, number)
    _check(path, source, number)
    if path.suffix.lower() == ".csv":
        rehearsal = rehearsal.with_evidence(path)
    rows: list[Any] = [(row.line, row.input) for row in source.rows]
    return rehearsal, storm_cases.out_of_rows(rows)


def _check(path: Path, source: Any, number: int) -> None:
    from casework.errors import InputError

    fault = next((row for row in source.rows if row.error), None)
    if fault is not None:
        raise InputError(f"{path}, line {fault.line}: {fault.error}. Correct the row.", field="inputs")
    if len(source.rows) < number:
        raise InputError(
            f"{path} has {len(source.rows)} rows and the storm takes {number}: the cases, and as many more for each "
            "killed server as are side by side. Ask for fewer with --cases or --side-by-side.",
            field="inputs",
        )


async def _storm(
    make_stack: Callable[[], LocalStack], rehearsal: Rehearsal, home: Path, plan: StormPlan, voice: Teller
) -> Report:
    from casework.drills import storm as story
    from casework.drills.ground import Ground
    from casework.drills.promises import Report
    from casework.drills.scenarios import played

    voice.say(f"Starting PostgreSQL, Temporal and the API in {home}")
    gauge = _Line(voice) if voice.speaks and sys.stdout.isatty() else _Lines(voice)
    report = Report(story.NAME, story.TITLE, gauge.say)
    async with Ground(make_stack, rehearsal, home / "faults") as ground:
        voice.heading(f"{len(plan.first)} cases, {plan.side_by_side} side by side; {story.TITLE.lower()}")
        await played(ground, report, story.played(plan, gauge))
    voice.heading("What was counted")
    voice.counts(report)
    voice.heading("What was promised, and what held")
    voice.promises(report)
    return report


def _words(at_rest: int, of: int, under_way: int, killed: int) -> str:
    return f"{at_rest} of {of} cases at rest, {under_way} under way, {killed} workers killed"


class _Line:
    """One line of a terminal, written over again and again; what is said goes above it."""

    def __init__(self, voice: Teller) -> None:
        self._voice = voice

    def show(self, at_rest: int, of: int, under_way: int, killed: int) -> None:
        click.echo(f"{CLEAR}  {_words(at_rest, of, under_way, killed)}", nl=False, color=True)

    def say(self, text: str) -> None:
        click.echo(CLEAR, nl=False, color=True)
        self._voice.say(text)


class _Lines:
    """Now and then a line of its own."""

    def __init__(self, voice: Teller) -> None:
        self._voice = voice
        self._said = time.monotonic()

    def show(self, at_rest: int, of: int, under_way: int, killed: int) -> None:
        if time.monotonic() - self._said >= SAY_EVERY_S:
            self._said = time.monotonic()
            self.say(_words(at_rest, of, under_way, killed))

    def say(self, text: str) -> None:
        self._voice.say(text)
