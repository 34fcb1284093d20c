"""`casework drill process`: business processes under kills, races, a stop and a schedule."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from casework.drills.process_ground import ProcessGround
    from casework.drills.process_parts import Sizes
    from casework.drills.promises import Report

APP = "casework.drills.process_app:app"
PARTS = ("claimers", "schedule", "trays", "errors", "stop")
"""In the order in which they are played."""


@click.command()
@click.option(
    "--part", "wanted", type=click.Choice(PARTS), multiple=True, help="Play this part alone; may be given again."
)
@click.option(
    "--transactions", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="Of trays: how many."
)
@click.option(
    "--kills",
    type=click.IntRange(0, 1000),
    default=20,
    show_default=True,
    help="Workers that are killed in trays, and claimers.",
)
@click.option(
    "--kill-every",
    type=click.FloatRange(0.1, 3600),
    default=3.0,
    show_default=True,
    help="Seconds between two kills of a worker, at least.",
)
@click.option("--claimers", type=click.IntRange(1, 64), default=8, show_default=True, help="Claimers that race.")
@click.option(
    "--rows", type=click.IntRange(1, 1_000_000), default=100_000, show_default=True, help="Rows that they race for."
)
@click.option("--app", "reference", default=APP, show_default=True, help="The application, with the tasks of this one.")
@json_option
def process(
    wanted: tuple[str, ...],
    transactions: int,
    kills: int,
    kill_every: float,
    claimers: int,
    rows: int,
    reference: str,
    as_json: bool,
) -> int:
    """Kill workers and claimers, race with the Error process, stop a Monitor by its row, follow a schedule.

    Transactions in trays must pass every task exactly once while workers are killed with SIGKILL, as the ledger, a
    table and a destination count it, and the books must balance (`casework process audit`). The folder of the stack is
    kept where a promise failed.
    """
    from casework.cli.rehearsing import temporary_home
    from casework.cli.telling import teller
    from casework.drills import process_parts
    from casework.drills.process_ground import ProcessGround
    from casework.drills.promises import Report

    voice = teller(quiet=as_json)
    sizes = process_parts.Sizes(transactions, kills, kill_every, claimers, rows)
    with temporary_home("casework-process-") as home:
        received = home.path / "received"
        received.mkdir()
        reports: list[Report] = []

        async def played() -> None:
            async with ProcessGround(home.stack_maker(reference)(), received) as ground:
                for part in PARTS:
                    if wanted and part not in wanted:
                        continue
                    report = Report(part, process_parts.TITLES[part], voice.say)
                    voice.heading(report.title)
                    await _play(ground, report, sizes)
                    voice.promises(report)
                    voice.counts(report)
                    reports.append(report)

        asyncio.run(played())
        held = all(report.held for report in reports)
        home.keep(not held)
    kept = None if held else home.path
    if as_json:
        parts = [report.to_plain() for report in reports]
        emit_json({"drill": "process", "held": held, "parts": parts, "kept": kept and str(kept)})
    else:
        voice.verdict(reports, kept)
    return exits.OK if held else exits.FAILED


async def _play(ground: ProcessGround, report: Report, sizes: Sizes) -> None:
    """One part, to its end or to where it broke off; the others are played all the same."""
    from casework.drills import process_parts
    from casework.drills.promises import BrokenOffError
    from casework.errors import CaseworkError

    began = time.monotonic()
    try:
        await process_parts.play(ground, report, sizes)
    except (BrokenOffError, CaseworkError) as error:
        report.promise("The part came to its end", False, error)
    finally:
        report.seconds = time.monotonic() - began
