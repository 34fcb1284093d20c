"""What a run did, visit by visit: the same for every driver that was given the same outcomes."""

from __future__ import annotations

from typing import NamedTuple

from casework.graph.commands import Branch, Due, Joined, Outcome, RunBranches


class TraceStep(NamedTuple):
    """A visit, or a branch of one, that has ended: where, what was due, what it came back with (names of the kinds)."""

    path: str
    command: str
    outcome: str


def path_of(command: Due, branch: Branch | None = None) -> str:
    """The path of a visit in the task tree (`gather.2`), or of a branch below it (`gather.2/web.1`)."""
    path = f"{command.node}.{command.visit}"
    return path if branch is None else f"{path}/{branch.step}"


def steps(command: Due, outcome: Outcome) -> list[TraceStep]:
    """The steps of one visit: its branches in their order, then the visit itself."""
    visit = TraceStep(path_of(command), type(command).__name__, type(outcome).__name__)
    if not isinstance(command, RunBranches) or not isinstance(outcome, Joined):
        return [visit]
    made: list[TraceStep] = []
    for branch, result in zip(command.branches, outcome.results, strict=True):
        kinds = type(branch.command).__name__, type(result).__name__
        made.append(TraceStep(path_of(command, branch), *kinds))
    return [*made, visit]
