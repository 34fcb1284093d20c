"""How long a killed worker's run stands still where another stands by: from the kill to the next step's start."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casework.drills.ground import Ground
from casework.drills.kill_plan import Kill, faults_of, sends, tool_and_point
from casework.drills.promises import Report
from casework.drills.tally import figures, instant_of, promise_calls, tally
from casework.durable.activities.faults import POINTS, Mark
from casework.rehearsal import Rehearsal

NAME = "recovery"
TITLE = "How fast another worker goes on"
KILLS = 10
AT_MOST_S = 3.0
"""The promise, for the median."""
RESUME_S = 3.0
"""A worker stands by at a kill if it takes work for so many seconds after it; most runs go on within them."""
PATIENCE_S = 600.0
"""For a run to reach its review: with four kills on its way, on a machine that has other work too."""
LOOK_EVERY_S = 0.3
BURY_EVERY_S = 0.1


@dataclass(frozen=True)
class Resumed:
    """One kill at a point of a tool, and the seconds until the next step of its run started."""

    tool: str
    point: str
    seconds: float


async def play(ground: Ground, report: Report) -> None:
    """Kill ten workers in mid-run, two at each point, one after the other, with another one ready each time."""
    burying = asyncio.create_task(_bury(ground))
    try:
        runs = [await _one(ground, report, number, kills) for number, kills in enumerate(planned(ground.rehearsal))]
    finally:
        burying.cancel()
    await _judge(ground, report, runs)


async def _one(ground: Ground, report: Report, number: int, kills: list[Kill]) -> dict[str, Any]:
    """One run with its kills; its detail."""
    tag = f"drill-recovery-{number}"
    ground.faults.plan(faults_of(ground.rehearsal, kills, ground.run_id(tag), tag))
    # All are started before, so that no start takes the processor from what is measured.
    await ground.crew.staff(len(kills) + 1)
    run_id = await ground.submit(tag)
    run = await ground.api.until_review(run_id, patience_s=PATIENCE_S, every_s=LOOK_EVERY_S)
    for each in resumed(ground, [run], [mark for mark in ground.faults.marks() if mark.run == run_id]):
        report.tell(f"Killed at {each.point} of {each.tool}: the next step started after {each.seconds:.2f} s.")
    return run


async def _bury(ground: Ground) -> None:
    """Note at once when a worker is gone, so that it is not taken for one that stands by."""
    while True:
        ground.crew.bury()
        await asyncio.sleep(BURY_EVERY_S)


def planned(rehearsal: Rehearsal) -> list[list[Kill]]:
    """Ten kills at the points in turn, as the kills of single runs: one in each stage."""
    stages = rehearsal.stages
    due = [_kill(rehearsal, number, number % len(stages)) for number in range(KILLS)]
    return [due[first : first + len(stages)] for first in range(0, len(due), len(stages))]


def _kill(rehearsal: Rehearsal, number: int, stage: int) -> Kill:
    tool, point = rehearsal.stages[stage][0], POINTS[number % len(POINTS)]
    return Kill(point if point != "sent" or sends(rehearsal, tool) else "claimed", tool, stage)


async def _judge(ground: Ground, report: Report, runs: Sequence[Mapping[str, Any]]) -> None:
    ids = [run["run_id"] for run in runs]
    found = resumed(ground, runs, [mark for mark in ground.faults.marks() if mark.run in ids])
    seconds = [each.seconds for each in found]
    median = statistics.median(seconds) if seconds else None
    report.counts.update(await figures(ground, *ids))
    report.counts.update(
        kills=len(found),
        seconds_to_resume=[round(each, 2) for each in seconds],
        median_seconds_to_resume=None if median is None else round(median, 2),
        median_seconds_by_point=medians_by_point(found),
    )
    report.promise(f"{KILLS} workers were killed while another stood by", len(found) == KILLS, f"{len(found)} kills")
    held = median is not None and median <= AT_MOST_S
    told = "nothing was measured" if median is None else f"{median:.2f} s"
    report.promise(f"The run went on within {AT_MOST_S:g} seconds (median)", held, told)
    duplicates = report.counts["duplicates"]
    report.promise("No effect happened twice", duplicates == 0, f"{duplicates} duplicates")
    promise_calls(report, [await tally(ground, run_id) for run_id in ids])


def resumed(ground: Ground, runs: Iterable[Mapping[str, Any]], marks: Iterable[Mark]) -> list[Resumed]:
    """Kills with the seconds to the start of the next step of their run, where another worker stood by meanwhile."""
    starts = {
        run["run_id"]: sorted(instant_of(one["started_at"]) for step in run["steps"] for one in step["attempts"])
        for run in runs
    }
    found = []
    for mark in marks:
        after = [at for at in starts.get(mark.run, ()) if at > mark.at]
        if after and ground.crew.stood_by(mark.pid, mark.at, mark.at + RESUME_S):
            found.append(Resumed(*tool_and_point(mark.id), after[0] - mark.at))
    return found


def medians_by_point(found: Iterable[Resumed]) -> dict[str, float]:
    """The median seconds of the kills at each point, in the points' order."""
    by_point: dict[str, list[float]] = {}
    for each in found:
        by_point.setdefault(each.point, []).append(each.seconds)
    return {point: round(statistics.median(by_point[point]), 2) for point in POINTS if point in by_point}
