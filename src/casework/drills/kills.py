"""Many SIGKILLs at every point of every tool, while runs go on side by side and workers stand by."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from casework.drills import outlive
from casework.drills.ground import Ground
from casework.drills.kill_plan import Kill, chosen, fault_id, faults_of, spread, tool_and_point
from casework.drills.promises import Report
from casework.drills.recovery import medians_by_point, resumed
from casework.drills.tally import RunTally, StepTally, promise_calls, tally_of
from casework.durable.activities.faults import POINTS, Mark

NAME = "kills"
STANDING_BY = 3
SIDE_BY_SIDE = 4
"""Runs under way at one time."""
ROUNDS = 6
"""A kill that could not be (its process was dead of another, or a step was spared) is made up for in a later round."""
PATIENCE_S = 600.0
"""For a run to reach its review: with four kills on its way, on a machine that has other work too."""
LOOK_EVERY_S = 0.6
"""Kills take seconds each; looking more often would only take the processor from the workers."""


async def play(ground: Ground, report: Report, kills: int, declared: Mapping[str, str]) -> None:
    """Kill workers `kills` times, then let first attempts outlive the second one's start.

    `declared` says how each tool is safe to repeat, by name.
    """
    runs = await _killing(ground, report, kills, declared)
    killed, marks = ground.crew.killed, ground.faults.marks()
    while ground.crew.pids:
        ground.crew.kill_one()  # the next part has workers of its own
    outlived = await outlive.play(ground, report, declared)
    await _judge(ground, report, declared, (kills, killed), [*runs, *outlived], marks)


async def _killing(ground: Ground, report: Report, kills: int, declared: Mapping[str, str]) -> list[str]:
    await ground.crew.staff(STANDING_BY)
    keeping = asyncio.create_task(ground.crew.keep(STANDING_BY))
    runs: list[str] = []
    due = chosen(ground.rehearsal, declared, kills)
    try:
        for number in range(ROUNDS):
            if ground.crew.killed < kills:
                due = due or chosen(ground.rehearsal, declared, kills - ground.crew.killed)
                made, due = await _round(ground, report, number, due)
                runs += made
    finally:
        keeping.cancel()
        if keeping.done() and not keeping.cancelled():
            keeping.result()  # no worker could be started any more: that is why nothing went on
    return runs


async def _round(ground: Ground, report: Report, number: int, due: Sequence[Kill]) -> tuple[list[str], list[Kill]]:
    """Play runs until each awaits its review; their ids, and the kills that did not happen."""
    plan = {f"drill-kills-{number}-{place}": kills for place, kills in enumerate(spread(due))}
    ground.faults.plan(
        [fault for tag, kills in plan.items() for fault in faults_of(ground.rehearsal, kills, ground.run_id(tag), tag)]
    )
    report.tell(f"{len(due)} kills are planned in {len(plan)} runs, {SIDE_BY_SIDE} side by side.")
    gate = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(tag: str) -> str:
        async with gate:
            run_id = await ground.submit(tag)
            await ground.api.until_review(run_id, patience_s=PATIENCE_S, every_s=LOOK_EVERY_S)
            return run_id

    ids = await asyncio.gather(*(one(tag) for tag in plan))
    ground.crew.bury()
    report.tell(f"{ground.crew.killed} workers were killed so far; every run of the round awaits its review.")
    happened = {mark.id for mark in ground.faults.marks()}
    return ids, [kill for tag, kills in plan.items() for kill in kills if fault_id(tag, kill) not in happened]


async def _judge(
    ground: Ground,
    report: Report,
    declared: Mapping[str, str],
    wanted_and_killed: tuple[int, int],
    ids: Sequence[str],
    marks: Sequence[Mark],
) -> None:
    wanted, killed = wanted_and_killed
    counts, passed = await ground.counts(), ground.faults.calls()
    runs = [await ground.api.run(run_id) for run_id in ids]
    tallies = [tally_of(ground, run, counts, passed) for run in runs]
    _count_kills(report, declared, killed, marks)
    _count_steps(ground, report, declared, tallies)
    _count_seconds(ground, report, runs, marks)
    twice = report.counts["duplicates_by_declaration"]
    duplicates, lost = counts.duplicates, sum(tally.lost for tally in tallies)
    waiting = sum(run["status"] == "AWAITING_REVIEW" for run in runs)
    missing = [
        f"{tool} of {tally.run_id}{_ends(run, tool)}"
        for run, tally in zip(runs, tallies, strict=True)
        for tool in tally.missing
    ]
    told = ", ".join(f"{name} {number}" for name, number in twice.items() if number)
    report.promise(f"{wanted} workers were killed", killed >= wanted, f"{killed} SIGKILLs")
    report.promise(
        "No effect happened twice, at the destination or in a table",
        duplicates == 0,
        f"{duplicates} duplicates{f': {told}' if told else ''}",
    )
    report.promise("No effect of a completed step is missing", lost == 0, f"{lost} missing")
    promise_calls(report, tallies)
    report.promise("Every step has one row with one completed attempt", all(each.single for each in tallies))
    report.promise("Every run awaits its review", waiting == len(runs), f"{waiting} of {len(runs)}")
    report.promise("Every evidence row is there", not missing, f"missing: {', '.join(missing) or 'none'}")


def _ends(run: Mapping[str, Any], tool: str) -> str:
    """How the attempts of a tool ended that has no result, so that a kept report says why."""
    attempts = [one for step in run["steps"] if step["name"] == tool for one in step["attempts"]]
    ends = "; ".join(f"{one['outcome'] or 'open'} {one['error'] or ''}".strip() for one in attempts)
    return f" ({ends or 'not called'})"


def _count_kills(report: Report, declared: Mapping[str, str], killed: int, marks: Iterable[Mark]) -> None:
    made = [tool_and_point(mark.id) for mark in marks]
    points = Counter(point for _, point in made)
    by_declaration = Counter(declared[tool] for tool, _ in made)
    report.counts.update(
        kills=killed,
        kills_by_point={point: points[point] for point in POINTS if points[point]},
        kills_by_declaration={name: by_declaration[name] for name in dict.fromkeys(declared.values())},
    )


def _count_steps(ground: Ground, report: Report, declared: Mapping[str, str], tallies: Sequence[RunTally]) -> None:
    steps = [step for tally in tallies for step in tally.steps]

    def of(declaration: str) -> list[StepTally]:
        return [step for step in steps if declared.get(step.tool) == declaration]

    kinds = list(dict.fromkeys(declared.values()))
    report.counts.update(
        runs=len(tallies),
        calls={tool: sum(step.acts for step in steps if step.tool == tool) for tool in ground.rehearsal.tools},
        calls_at_destination=sum(step.calls or 0 for step in steps),
        effects=sum(step.effects or 0 for step in steps),
        effects_by_declaration={kind: sum(step.effects or 0 for step in of(kind)) for kind in kinds},
        duplicates=sum(tally.duplicates for tally in tallies),
        duplicates_by_declaration={kind: sum(max(0, (step.effects or 0) - 1) for step in of(kind)) for kind in kinds},
        in_flight_repeats=sum(tally.repeats for tally in tallies),
    )


def _count_seconds(ground: Ground, report: Report, runs: Sequence[Mapping[str, Any]], marks: Sequence[Mark]) -> None:
    found = resumed(ground, runs, marks)
    seconds = [each.seconds for each in found]
    report.counts.update(
        resumed_by_a_worker_that_stood_by=len(found),
        median_seconds_to_resume=round(statistics.median(seconds), 2) if seconds else None,
        median_seconds_by_point=medians_by_point(found),
    )
