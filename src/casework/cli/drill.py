"""`casework drill`: real servers, real kills, and an exit code that is 0 only if every promise held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from casework.cli import exits
from casework.cli.drill_process import process
from casework.cli.drill_storm import storm
from casework.cli.output import emit_json, json_option
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.ground import Ground
    from casework.drills.promises import Report
    from casework.drills.stack import LocalStack
    from casework.rehearsal import Rehearsal

    Play = tuple[str, str, Callable[[Ground, Report], Awaitable[None]]]

SAMPLE = "casework.examples.repeat_safety:app"
"""The application with a tool of each declaration; by its name alone, since nothing imports the examples."""


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND]")
@app_option
@click.option("--kills", type=click.IntRange(1, 1000), help="Kill workers so many times instead of the scenarios.")
@click.option("--only", multiple=True, metavar="NAME", help="Play only this scenario; give it once for each.")
@json_option
@click.pass_context
def drill(
    context: click.Context, reference: str | None, kills: int | None, only: tuple[str, ...], as_json: bool
) -> int:
    """Kill workers with SIGKILL and stop servers in a stack of its own, and count what came of it.

    Six scenarios: a crash after completed tools; a commit with a lost acknowledgement; a review left open while
    everything is stopped and started again; a stale decision and two reviewers at once; a policy changed in mid-run;
    the time until another worker goes on. With --kills N: N kills spread over all points of all tools instead, then
    first attempts that are alive when the second one starts. Where no application is named it is one that ships: the
    loan case, and for kills one with a tool of each declaration. The stack's folder is kept where a promise failed.
    """
    if context.invoked_subcommand is not None:
        return _leave_to(context, context.invoked_subcommand)
    if kills and only:
        context.fail("--kills and --only exclude each other: kills are no scenario.")
    return _play(reference, kills, only, as_json)


def _leave_to(context: click.Context, subcommand: str) -> int:
    """Let the subcommand do the work; an option before its name would be lost in silence."""
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        context.fail(f"Options of this drill stand behind its name: casework drill {subcommand} --help shows them.")
    return exits.OK


def _play(reference: str | None, kills: int | None, only: tuple[str, ...], as_json: bool) -> int:
    from casework.cli.rehearsing import SHIPPED, rehearsed, temporary_home
    from casework.cli.telling import teller

    wanted, rehearsal = rehearsed(reference, SAMPLE if kills else SHIPPED)
    plays = _kills(wanted, rehearsal, kills) if kills else _scenarios(rehearsal, only)
    voice = teller(quiet=as_json)
    with temporary_home("casework-drill-") as home:
        reports = asyncio.run(_drill(home.stack_maker(wanted), rehearsal, home.path, plays, voice))
        held = all(report.held for report in reports)
        home.keep(not held)
    if as_json:
        emit_json(
            {
                "drill": "kills" if kills else "scenarios",
                "app": wanted,
                "held": held,
                "scenarios": [report.to_plain() for report in reports],
                "kept": None if held else str(home.path),
            }
        )
    else:
        voice.verdict(reports, None if held else home.path)
    return exits.OK if held else exits.FAILED


def _kills(wanted: str, rehearsal: Rehearsal, kills: int) -> list[Play]:
    from functools import partial

    from casework.app import load_app
    from casework.drills import kills as killing
    from casework.drills.kill_plan import declarations

    declared = declarations(rehearsal, load_app(wanted or None).toolbox)
    play = partial(killing.play, kills=kills, declared=declared)
    return [(killing.NAME, f"{kills} kills over points and tools", play)]


def _scenarios(rehearsal: Rehearsal, only: tuple[str, ...]) -> list[Play]:
    from casework.drills import scenarios

    return [(each.NAME, each.TITLE, each.play) for each in scenarios.wanted(rehearsal, only)]


async def _drill(
    make_stack: Callable[[], LocalStack], rehearsal: Rehearsal, home: Path, plays: list[Play], voice: Teller
) -> list[Report]:
    from casework.drills.ground import Ground
    from casework.drills.promises import Report
    from casework.drills.scenarios import played

    voice.say(f"Starting PostgreSQL, Temporal and the API in {home}")
    reports = []
    async with Ground(make_stack, rehearsal, home / "faults") as ground:
        for name, title, play in plays:
            report = Report(name, title, voice.say)
            voice.heading(title)
            await played(ground, report, play)
            voice.counts(report)
            voice.promises(report)
            reports.append(report)
    return reports


drill.add_command(storm)
drill.add_command(process)
