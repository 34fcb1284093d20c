"""`casework drill process`: Transactions in trays while workers are killed."""

from __future__ import annotations

import asyncio
import time

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

APP = "casework.drills.process_app:app"


@click.command()
@click.option(
    "--transactions", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="How many there are."
)
@click.option("--kills", type=click.IntRange(0, 1000), default=20, show_default=True, help="Workers that are killed.")
@click.option(
    "--kill-every",
    type=click.FloatRange(0.1, 3600),
    default=3.0,
    show_default=True,
    help="Seconds between two kills of a worker.",
)
@json_option
def process(transactions: int, kills: int, kill_every: float, as_json: bool) -> int:
    """Kill workers with SIGKILL while Transactions are in trays of a process with three tasks.

    Every Transaction must pass every task exactly once, as the ledger, a table and a destination count it, and the
    books must balance (`casework process audit`). The stack's folder is kept where a promise failed.
    """
    from casework.cli.rehearsing import temporary_home
    from casework.cli.telling import teller
    from casework.drills import process_trays
    from casework.drills.promises import BrokenOffError, Report
    from casework.errors import CaseworkError

    voice = teller(quiet=as_json)
    with temporary_home("casework-process-") as home:
        report = Report(process_trays.NAME, process_trays.TITLE, voice.say)
        voice.heading(process_trays.TITLE)

        received = home.path / "received"
        received.mkdir()

        async def played() -> None:
            stack = home.stack_maker(APP)()
            await stack.start(workers=0)
            began = time.monotonic()
            try:
                await process_trays.play(stack, report, received, transactions, kills, kill_every)
            except (BrokenOffError, CaseworkError) as error:
                report.promise("The drill came to its end", False, error)
            finally:
                report.seconds = time.monotonic() - began
                await stack.stop()

        asyncio.run(played())
        home.keep(not report.held)
    kept = None if report.held else home.path
    if as_json:
        emit_json({"drill": "process", **report.to_plain(), "kept": kept and str(kept)})
    else:
        voice.counts(report)
        voice.verdict([report], kept)
    return exits.OK if report.held else exits.FAILED
