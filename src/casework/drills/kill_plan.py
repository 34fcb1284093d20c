"""Which worker dies where: kills spread over the points and the tools, and over as many runs as that needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle, islice

from casework.durable.activities.faults import POINTS, Fault
from casework.rehearsal import Rehearsal


@dataclass(frozen=True)
class Kill:
    """One kill: at this point of this tool, which belongs to a stage of the case."""

    point: str
    tool: str
    stage: int


def kinds(rehearsal: Rehearsal) -> list[Kill]:
    """Every point of every tool. `sent` has a meaning only where something is sent that has an effect."""
    return [
        Kill(point, tool, stage)
        for point in POINTS
        for stage, tools in enumerate(rehearsal.stages)
        for tool in tools
        if point != "sent" or tool in rehearsal.destination.keyed
    ]


def chosen(rehearsal: Rehearsal, number: int) -> list[Kill]:
    """`number` kills, every kind in its turn."""
    return list(islice(cycle(kinds(rehearsal)), number))


def spread(kills: Iterable[Kill]) -> list[list[Kill]]:
    """Kills as the kills of single runs.

    A run has at most one in each stage: tools of a stage run side by side in one worker, so that a kill of one takes an
    attempt of the other, and attempts are bounded.
    """
    runs: list[list[Kill]] = []
    for kill in kills:
        fitting = (run for run in runs if all(other.stage != kill.stage for other in run))
        home = next(fitting, None)
        if home is None:
            runs.append(home := [])
        home.append(kill)
    return runs


def faults_of(kills: list[Kill], run_id: str, tag: str) -> list[Fault]:
    """The faults of one run, for its first turn."""
    return [Fault(fault_id(tag, kill), kill.point, f"*/{kill.tool}.1", run_id) for kill in kills]  # type: ignore[arg-type]  # a Point, out of POINTS


def fault_id(tag: str, kill: Kill) -> str:
    """The id of a kill in the run of that tag; its point is behind the last dash."""
    return f"{tag}-{kill.tool}-{kill.point}"
