"""`casework demo`: one case from start to end on real servers, a worker killed on the way, a person's decision."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.ground import Ground
    from casework.drills.promises import Report
    from casework.drills.stack import LocalStack
    from casework.rehearsal import Rehearsal


@click.command()
@app_option
@json_option
def demo(reference: str | None, as_json: bool) -> int:
    """Submit cases, kill a worker in mid-run, recover, decide, and print the audit trail.

    On a terminal you are asked for the decision; elsewhere a scripted reviewer asks for more information, then
    approves, while a stale decision is refused. Everything runs in a temporary folder, kept only where a promise
    failed. The exit code is 0 only if every promise held.
    """
    from casework.cli.rehearsing import rehearsed, temporary_home
    from casework.cli.telling import teller

    wanted, rehearsal = rehearsed(reference)
    voice = teller(quiet=as_json)
    person = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    with temporary_home("casework-demo-") as home:
        report, trail = asyncio.run(_demo(home.stack_maker(wanted), rehearsal, home.path, voice, person))
        home.keep(not report.held)
    kept = None if report.held else home.path
    if as_json:
        emit_json({"app": wanted, **report.to_plain(), "audit": trail, "kept": kept and str(kept)})
    else:
        voice.verdict([report], kept)
    return exits.OK if report.held else exits.FAILED


async def _demo(
    make_stack: Callable[[], LocalStack], rehearsal: Rehearsal, home: Path, voice: Teller, person: bool
) -> tuple[Report, Any]:
    from casework.cli.demo_view import DemoView
    from casework.drills import demo as story
    from casework.drills.ground import Ground
    from casework.drills.promises import Report
    from casework.drills.scenarios import played

    report = Report(story.NAME, f"One case of {rehearsal.workflow}", voice.say)
    view = DemoView(voice, person)
    found: list[Any] = []

    async def play(ground: Ground, report: Report) -> None:
        run_id = await story.play(ground, report, view)
        found.append(await _audit(ground, report, run_id, voice))

    voice.heading(f"Starting PostgreSQL, Temporal and the API in {home}")
    async with Ground(make_stack, rehearsal, home / "faults") as ground:
        await played(ground, report, play)
    voice.heading("What was promised, and what held")
    voice.promises(report)
    return report, found[0] if found else None


async def _audit(ground: Ground, report: Report, run_id: str, voice: Teller) -> Mapping[str, Any]:
    """The audit trail of the case, printed, and whether it is whole."""
    from uuid import UUID

    from casework.cli import audit_view
    from casework.drills.ground import TENANT
    from casework.store.audit import trail
    from casework.store.database import Database

    dsn = ground.stack.settings.database.runtime_dsn()
    async with await Database.open(dsn, max_size=1, name="casework-demo") as db, db.transaction() as conn:
        found = await trail(conn, TENANT, UUID(run_id))
    assert found is not None, "the run was just there"
    told = found.to_plain()
    gaps = audit_view.gaps(told)
    if voice.speaks:
        voice.heading("The audit trail")
        audit_view.print_trail(told, gaps)
    report.promise("The audit trail is whole", not gaps, "; ".join(gaps) or f"{len(told['events'])} events")
    return told
