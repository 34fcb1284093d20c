"""Which worker dies where: kills spread evenly over declarations and points, in as many runs as that needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle, islice

from casework.agents.toolbox import Toolbox
from casework.durable.activities.faults import KEY, POINTS, Fault, Point
from casework.rehearsal import Rehearsal

READS = "reads"
"""What stands for the declaration of a tool without effects."""


@dataclass(frozen=True)
class Kill:
    """One kill: at this point of this tool, which belongs to a stage of the case."""

    point: Point
    tool: str
    stage: int


def declarations(rehearsal: Rehearsal, toolbox: Toolbox) -> dict[str, str]:
    """How each tool of a case is safe to repeat: its declaration, or `reads`."""
    tools = [toolbox.get(name) for name in rehearsal.tools]
    return {tool.name: str(tool.repeat.value) if tool.effects else READS for tool in tools}


def kinds(rehearsal: Rehearsal, declared: Mapping[str, str]) -> list[Kill]:
    """Every point of every tool, such that each beginning of the list is spread over declarations and points.

    `sent` has a meaning only where something with an effect is sent.
    """
    rows = [_of(rehearsal, declared, declaration) for declaration in dict.fromkeys(declared.values())]
    longest = max(len(row) for row in rows)
    # Declarations take turns, and so do the points. Where the two would fall into step, each round begins one later.
    turns = [list(islice(cycle(row), longest)) for row in rows]  # the shorter ones begin anew
    round_of = math.lcm(len(rows), longest)
    return [turns[n % len(rows)][(n + n // round_of) % longest] for n in range(len(rows) * longest)]


def _of(rehearsal: Rehearsal, declared: Mapping[str, str], declaration: str) -> list[Kill]:
    """Every point of the tools of one declaration."""
    return [
        Kill(point, tool, stage)
        for point in POINTS
        for stage, tools in enumerate(rehearsal.stages)
        for tool in tools
        if declared[tool] == declaration and (point != "sent" or sends(rehearsal, tool))
    ]


def sends(rehearsal: Rehearsal, tool: str) -> bool:
    """Whether an attempt of the tool can be met when its effect was sent and is not done."""
    return tool in rehearsal.destination.acting or tool in _own_tables(rehearsal)


def _own_tables(rehearsal: Rehearsal) -> Mapping[str, str]:
    return rehearsal.tables.effects if rehearsal.tables else {}


def chosen(rehearsal: Rehearsal, declared: Mapping[str, str], number: int) -> list[Kill]:
    """`number` kills, every kind in its turn."""
    return list(islice(cycle(kinds(rehearsal, declared)), number))


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


def faults_of(rehearsal: Rehearsal, kills: Iterable[Kill], run_id: str, tag: str) -> list[Fault]:
    """The faults of the run of a tag, for its first turn."""
    return [
        Fault(fault_id(tag, kill), kill.point, f"*/{kill.tool}.1", run_id, received=received(rehearsal, kill.tool, tag))
        for kill in kills
    ]


def received(rehearsal: Rehearsal, tool: str, tag: str) -> str | None:
    """The file that the destination leaves for a call of `tool` in the run of that tag; None: it does not go there."""
    subject = str(rehearsal.tagged(tag)[rehearsal.tag_field])
    return rehearsal.destination.name_of(tool, KEY, subject)


def fault_id(tag: str, kill: Kill) -> str:
    """The id of a kill in the run of that tag; its tool and its point are behind the last two dashes."""
    return f"{tag}-{kill.tool}-{kill.point}"


def tool_and_point(fault: str) -> tuple[str, str]:
    """The tool and the point in the id of a kill."""
    before, _, point = fault.rpartition("-")
    return before.rpartition("-")[2], point
