"""`casework drill`: real servers, real kills, and an exit code that is 0 only if every promise held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from casework.cli import exits
from casework.cli.drill_storm import storm
from casework.cli.output import emit_json, json_option
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.promises import Report
    from casework.drills.stack import LocalStack
    from casework.rehearsal import Rehearsal


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND]")
@app_option
@click.option("--kills", type=click.IntRange(1, 1000), help="Kill workers so many times instead of the scenarios.")
@json_option
@click.pass_context
def drill(context: click.Context, reference: str | None, kills: int | None, as_json: bool) -> int:
    """Kill workers with SIGKILL and stop servers in a stack of its own, and count what came of it.

    Five scenarios: a crash after completed tools; a commit with a lost acknowledgement; a review left open while
    everything is stopped and started again; a stale decision and two reviewers at once; a policy changed in mid-run.
    With --kills N: N kills at every point of every tool instead. The stack's folder is kept where a promise failed.
    """
    if context.invoked_subcommand is not None:
        return _leave_to(context, context.invoked_subcommand)
    return _play(reference, kills, as_json)


def _leave_to(context: click.Context, subcommand: str) -> int:
    """Let the subcommand do the work; an option before its name would be lost in silence."""
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        context.fail(f"Options of this drill stand behind its name: casework drill {subcommand} --help shows them.")
    return exits.OK


def _play(reference: str | None, kills: int | None, as_json: bool) -> int:
    from casework.cli.rehearsing import rehearsed, temporary_home
    from casework.cli.telling import teller

    wanted, rehearsal = rehearsed(reference)
    voice = teller(quiet=as_json)
    with temporary_home("casework-drill-") as home:
        reports = asyncio.run(_drill(home.stack_maker(wanted), rehearsal, home.path, kills, voice))
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


async def _drill(
    make_stack: Callable[[], LocalStack], rehearsal: Rehearsal, home: Path, kills: int | None, voice: Teller
) -> list[Report]:
    from casework.drills.ground import Ground

    voice.say(f"Starting PostgreSQL, Temporal and the API in {home}")
    async with Ground(make_stack, rehearsal, home / "faults") as ground:
        reports = []
        async for report in _reports(ground, kills, voice):
            voice.counts(report)
            voice.promises(report)
            reports.append(report)
        return reports


async def _reports(ground: object, kills: int | None, voice: Teller) -> AsyncIterator[Report]:
    from functools import partial

    from casework.drills import kills as killing
    from casework.drills import scenarios
    from casework.drills.ground import Ground
    from casework.drills.promises import Report

    assert isinstance(ground, Ground)
    if kills is None:
        for scenario in scenarios.SCENARIOS:
            report = Report(scenario.NAME, scenario.TITLE, voice.say)
            voice.heading(report.title)
            await scenarios.played(ground, report, scenario.play)
            yield report
        return
    report = Report(killing.NAME, f"{kills} kills over points and tools", voice.say)
    voice.heading(report.title)
    await scenarios.played(ground, report, partial(killing.play, kills=kills))
    yield report


drill.add_command(storm)
