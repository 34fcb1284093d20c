"""Many SIGKILLs at every point of every tool, while runs go on side by side and workers stand by."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from casework.drills.ground import Ground
from casework.drills.kill_plan import Kill, chosen, fault_id, faults_of, spread
from casework.drills.promises import Report
from casework.drills.tally import RunTally, instant_of, tally_of
from casework.drills.waiting import until_in_flight, until_mark
from casework.durable.activities.faults import Fault, Mark

NAME = "kills"
STANDING_BY = 3
SIDE_BY_SIDE = 4
"""Runs under way at one time."""
ROUNDS = 6
"""A kill that could not be (its process was dead of another, or a step was spared) is made up for in a later round."""
PATIENCE_S = 120.0
LOOK_EVERY_S = 0.6
"""Kills take seconds each; looking more often would only take the processor from the workers."""
OUTLIVE_S = 12.0
"""How long the destination holds the attempt that is to come too late, if it is not released before."""
RESUME_S = 3.0
"""A worker stands by at a kill if it takes work for so many seconds after it; most runs go on within them."""


async def play(ground: Ground, report: Report, kills: int) -> None:
    """Kill workers `kills` times, then once more let a first attempt outlive the second one's start."""
    await ground.crew.staff(STANDING_BY)
    keeping = asyncio.create_task(ground.crew.keep(STANDING_BY))
    runs: list[str] = []
    due = chosen(ground.rehearsal, kills)
    try:
        for number in range(ROUNDS):
            if ground.crew.killed < kills:
                due = due or chosen(ground.rehearsal, kills - ground.crew.killed)
                made, due = await _round(ground, report, number, due)
                runs += made
        outlived = await _outlive(ground, report)
    finally:
        keeping.cancel()
        if keeping.done() and not keeping.cancelled():
            keeping.result()  # no worker could be started any more: that is why nothing went on
    await _judge(ground, report, kills, [*runs, outlived])


async def _round(ground: Ground, report: Report, number: int, due: Sequence[Kill]) -> tuple[list[str], list[Kill]]:
    """Play runs until each awaits its review; their ids, and the kills that did not happen."""
    plan = {f"drill-kills-{number}-{place}": kills for place, kills in enumerate(spread(due))}
    ground.faults.plan([fault for tag, kills in plan.items() for fault in faults_of(kills, ground.run_id(tag), tag)])
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


async def _outlive(ground: Ground, report: Report) -> str:
    """Lose the heartbeats of an attempt; a second one starts beside it and commits; the first comes too late."""
    tag, tool = "drill-outlive", ground.rehearsal.destination.keyed[0]
    run_id = ground.run_id(tag)
    ground.faults.plan([Fault("outlive", "sent", f"*/{tool}.1", run_id, action="mute")])
    await ground.destination.slow_down(OUTLIVE_S)
    await ground.submit(tag)
    await until_mark(ground, "outlive")
    await until_in_flight(ground)
    await ground.destination.slow_down(0)
    await ground.api.until(run_id, lambda run: tool in run["evidence"], f"have {tool} from a second attempt")
    await ground.destination.release()
    report.tell(f"The heartbeats of an attempt of {tool} were lost; a second one started beside it and committed.")
    late = await ground.api.until(run_id, lambda run: bool(_late(run, tool)), "record the late result of the first")
    report.promise(
        "A result that came too late is kept as LATE and not used", bool(_late(late, tool)), _late(late, tool)
    )
    await ground.api.until_review(run_id)
    return run_id


def _late(run: dict[str, Any], tool: str) -> list[int]:
    steps = [step for step in run["steps"] if step["name"] == tool and step["state"] == "COMPLETED"]
    return [attempt["attempt"] for step in steps for attempt in step["attempts"] if attempt["outcome"] == "LATE"]


async def _judge(ground: Ground, report: Report, kills: int, ids: Sequence[str]) -> None:
    counts, passed, marks = await ground.destination.counts(), ground.faults.calls(), ground.faults.marks()
    runs = [await ground.api.run(run_id) for run_id in ids]
    tallies = [tally_of(ground, run, counts, passed) for run in runs]
    _count(ground, report, tallies, marks, _resumed(ground, runs, marks))
    duplicates, again = counts.duplicates, sum(tally.called_again for tally in tallies)
    waiting = sum(run["status"] == "AWAITING_REVIEW" for run in runs)
    missing = [tool for tally in tallies for tool in tally.missing]
    report.promise(f"{kills} workers were killed", ground.crew.killed >= kills, f"{ground.crew.killed} SIGKILLs")
    report.promise("No effect happened twice at the destination", duplicates == 0, f"{duplicates} duplicates")
    report.promise("No committed result was called again", again == 0, f"{again} called again")
    report.promise("Every step has one row with one completed attempt", all(each.single for each in tallies))
    report.promise("Every run awaits its review", waiting == len(runs), f"{waiting} of {len(runs)}")
    report.promise("Every evidence row is there", not missing, f"missing: {', '.join(missing) or 'none'}")


def _count(
    ground: Ground, report: Report, tallies: Sequence[RunTally], marks: Sequence[Mark], resumed: Sequence[float]
) -> None:
    points = Counter(mark.id.rpartition("-")[2] for mark in marks if mark.id != "outlive")
    steps = [step for tally in tallies for step in tally.steps]
    report.counts.update(
        kills=ground.crew.killed,
        kills_by_point=dict(points),
        runs=len(tallies),
        calls={tool: sum(step.acts for step in steps if step.tool == tool) for tool in ground.rehearsal.tools},
        calls_at_destination=sum(step.calls or 0 for step in steps),
        effects_at_destination=sum(step.effects or 0 for step in steps),
        duplicates=sum(tally.duplicates for tally in tallies),
        committed_called_again=sum(tally.called_again for tally in tallies),
        in_flight_repeats=sum(tally.repeats for tally in tallies),
        resumed_by_a_worker_that_stood_by=len(resumed),
        median_seconds_to_resume=round(statistics.median(resumed), 2) if resumed else None,
    )


def _resumed(ground: Ground, runs: Sequence[dict[str, Any]], marks: Sequence[Mark]) -> list[float]:
    """Seconds from a kill to the start of the next step of its run, where another worker stood by meanwhile."""
    starts = {
        run["run_id"]: sorted(instant_of(one["started_at"]) for step in run["steps"] for one in step["attempts"])
        for run in runs
    }
    found = []
    for mark in marks:
        after = [at for at in starts.get(mark.run, ()) if at > mark.at]
        if after and mark.id != "outlive" and ground.crew.stood_by(mark.pid, mark.at, mark.at + RESUME_S):
            found.append(after[0] - mark.at)
    return found
