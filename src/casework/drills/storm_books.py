"""What came of a storm, from four witnesses: rows, engine, destination, and the workers' own lines."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from casework.drills.client import ENDED, Client
from casework.drills.ground import TENANT, Ground
from casework.drills.promises import Report
from casework.drills.storm_cases import StormPlan
from casework.drills.tally import RunTally, promise_calls, tally_of
from casework.durable.connection import connect
from casework.durable.contracts import RUN_WORKFLOW
from casework.store import books
from casework.store.books import BookFault
from casework.store.database import Database

PROMISES: tuple[tuple[str, frozenset[str]], ...] = (
    ("Every case has its run, and no run is there twice", frozenset({"run_missing", "run_unasked"})),
    ("No run failed, or met an incident or a conflict", frozenset({"run_failed", "run_incident", "event_conflict"})),
    ("Every run awaits its review or was decided", frozenset({"run_elsewhere"})),
    ("Exactly one review waits for each", frozenset({"review_count"})),
    ("Every evidence row is there", frozenset({"evidence_missing"})),
    ("Every step completed, and no attempt is left open", frozenset({"step_open", "attempt_open"})),
    ("Every step has exactly one completed attempt", frozenset({"result_twice"})),
    ("Transcripts have no hole, and no message twice", frozenset({"transcript_hole", "message_note", "message_count"})),
    ("Events have no hole, and none is there twice", frozenset({"event_hole", "event_count"})),
    ("The roll-ups are what the attempts add up to", frozenset({"metrics_count"})),
)
"""Each promise and the kinds of faults in the rows that break it."""
SHOWN = 3
PATIENCE_S = 20.0
LOOK_EVERY_S = 0.5
_LEVEL = re.compile(r"^[\d-]+ [\d:,]+ (WARNING|ERROR|CRITICAL) ", re.MULTILINE)


async def judge(ground: Ground, report: Report, plan: StormPlan, api: Client) -> None:
    """Read the books of all cases of `plan`, and say what held."""
    ids = [ground.run_id(case.key) for case in plan.cases]
    faults, totals = await _read(ground, ids)
    runs = [run for run in [await api.run(run_id) for run_id in ids] if run]
    counts, passed = await ground.destination.counts(), ground.faults.calls()
    tallies = [tally_of(ground, run, counts, passed) for run in runs]
    report.counts.update(
        cases=len(ids),
        **_statuses(runs),
        rows=asdict(totals),
        **_acts(tallies),
        **_requests(api),
        workflows_in_engine=await _engine_side(ground, runs),
        log_lines=log_lines(ground.stack.home),
    )
    promise_rows(report, faults)
    _promise_acts(ground, report, tallies, len(ids))
    _promise_decisions(ground, report, plan, {run["run_id"]: run for run in runs})
    _promise_engine(report, runs)
    _promise_processes(ground, report, api)


async def _engine_side(ground: Ground, runs: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The engine's workflows of runs by state. What it can list lags, so it is asked until it agrees, for a while."""
    engine = await connect(ground.stack.settings)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        listed = engine.list_workflows(f"WorkflowType = '{RUN_WORKFLOW}'")
        found = Counter([one.status.name async for one in listed if one.status])
        if dict(found) == _wanted_in_engine(runs) or time.monotonic() > deadline:
            return dict(found)
        await asyncio.sleep(LOOK_EVERY_S)


def _wanted_in_engine(runs: Sequence[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter("COMPLETED" if run["status"] in ENDED else "RUNNING" for run in runs))


async def _read(ground: Ground, ids: Sequence[str]) -> tuple[list[BookFault], books.BookTotals]:
    opening = Database.open(ground.stack.admin_dsn, role=None, max_size=1, name="casework-drill")
    async with await opening as db, db.transaction() as conn:
        found = await books.faults(conn, TENANT, [UUID(each) for each in ids], ground.rehearsal.tools)
        return found, await books.totals(conn, TENANT)


def _statuses(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"runs_by_status": dict(Counter(run["status"] for run in runs))}


def _acts(tallies: Sequence[RunTally]) -> dict[str, Any]:
    steps = [step for tally in tallies for step in tally.steps]
    return {
        "acts_of_workers": sum(step.acts for step in steps),
        "calls_at_destination": sum(step.calls or 0 for step in steps),
        "effects_at_destination": sum(step.effects or 0 for step in steps),
        "duplicates": sum(tally.duplicates for tally in tallies),
        "in_flight_repeats": sum(tally.repeats for tally in tallies),
    }


def _requests(api: Client) -> dict[str, Any]:
    return {
        "answers_by_status": {str(status): number for status, number in sorted(api.answers.items())},
        "requests_without_answer": api.unanswered,
    }


def log_lines(home: Path) -> dict[str, int]:
    """How many warnings, errors and tracebacks the API and the workers wrote."""
    found: Counter[str] = Counter()
    for log in (*home.glob("worker-*/*.log"), *home.glob("api/*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        found.update(match[1].lower() + "s" for match in _LEVEL.finditer(text))
        found["tracebacks"] += text.count("Traceback (most recent call last)")
    return dict(found)


def promise_rows(report: Report, faults: Sequence[BookFault]) -> None:
    """Each promise about the rows, and the faults that break it."""
    for text, kinds in PROMISES:
        mine = [fault for fault in faults if fault.what in kinds]
        shown = "; ".join(f"{fault.run_id}: {fault.what} {fault.found}" for fault in mine[:SHOWN])
        more = f"; and {len(mine) - SHOWN} more" if len(mine) > SHOWN else ""
        report.promise(text, not mine, shown + more)


def _promise_acts(ground: Ground, report: Report, tallies: Sequence[RunTally], cases: int) -> None:
    counts = report.counts
    duplicates, effects = counts["duplicates"], counts["effects_at_destination"]
    wanted, lost = cases * len(ground.rehearsal.destination.keyed), sum(tally.lost for tally in tallies)
    report.promise(
        "The destination has every effect exactly once",
        duplicates == 0 and lost == 0 and effects == wanted,
        f"{effects} effects of {wanted}, {duplicates} twice, {lost} missing",
    )
    promise_calls(report, tallies)
    unseen = [step.path for tally in tallies for step in tally.steps if step.acts == 0]
    report.promise("Every step was begun by a worker that wrote it down", not unseen, f"{len(unseen)} were not")


def _promise_decisions(ground: Ground, report: Report, plan: StormPlan, runs: dict[str, dict[str, Any]]) -> None:
    approved, rejected = (runs[ground.run_id(case.key)] for case in plan.cases[:2])
    good = (approved["status"], approved["outcome"]) == ("COMPLETED", ground.rehearsal.outcome)
    report.promise("The approved case ended as approved", good, f"{approved['status']}, {approved['outcome']}")
    bad = rejected["status"] == "COMPLETED" and rejected["outcome"] != ground.rehearsal.outcome
    report.promise("The rejected case ended otherwise", bad, f"{rejected['status']}, {rejected['outcome']}")


def _promise_engine(report: Report, runs: Sequence[dict[str, Any]]) -> None:
    found = report.counts["workflows_in_engine"]
    held = found == _wanted_in_engine(runs)
    report.promise("The engine has one workflow for each run, open where it waits", held, found)


def _promise_processes(ground: Ground, report: Report, api: Client) -> None:
    refused = {status: number for status, number in api.answers.items() if status >= 500 and status != 503}
    report.promise("The API answered, or said that it could not (503)", not refused, refused or api.answers[503])
    traces = report.counts["log_lines"].get("tracebacks", 0)
    report.promise("No process was taken by surprise", not traces, f"{traces} tracebacks in the logs")
    crew = ground.crew
    report.promise(
        "No worker ended but by a kill, or at its start for want of a server",
        not crew.quit,
        ", ".join(crew.quit) or f"{crew.killed} killed",
    )
