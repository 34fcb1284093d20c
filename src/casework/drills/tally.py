"""What really happened in a run, put together from three sides: the ledger, the destination, the workers' own lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from casework.drills.destination import Counts
from casework.drills.ground import Ground
from casework.durable.activities.faults import Passed


@dataclass(frozen=True)
class StepTally:
    """One tool step. `acts` are begun acts as workers wrote them down, `calls` and `effects` the destination's."""

    path: str
    tool: str
    state: str
    completed_attempts: int
    acts: int
    acts_after_commit: int
    calls: int | None
    effects: int | None
    """At the destination, or in the application's own table."""


@dataclass(frozen=True)
class RunTally:
    """The tool steps of one run; `missing` tools have no result."""

    run_id: str
    steps: tuple[StepTally, ...]
    missing: tuple[str, ...]

    @property
    def called_again(self) -> int:
        """Acts that began after their result was committed; the promise is that there are none."""
        return sum(step.acts_after_commit for step in self.steps)

    @property
    def duplicates(self) -> int:
        """Effects beyond the first of each step; the promise is that there are none."""
        return sum(max(0, (step.effects or 0) - 1) for step in self.steps)

    @property
    def repeats(self) -> int:
        """Acts beyond the first of each step: a step that was in flight at a kill may act again."""
        return sum(max(0, step.acts - 1) for step in self.steps)

    @property
    def single(self) -> bool:
        """Whether each completed step has exactly one completed attempt."""
        return all(step.completed_attempts == (step.state == "COMPLETED") for step in self.steps)

    def of(self, tool: str) -> StepTally:
        """The last step of a tool."""
        return next(step for step in reversed(self.steps) if step.tool == tool)


async def tally(ground: Ground, run_id: str) -> RunTally:
    """Count one run."""
    run, counts, passed = await ground.api.run(run_id), await ground.counts(), ground.faults.calls()
    return tally_of(ground, run, counts, passed)


def tally_of(ground: Ground, run: Mapping[str, Any], counts: Counts, passed: Iterable[Passed]) -> RunTally:
    """Count one run from what is at hand."""
    begun: dict[str, list[float]] = {}
    for each in passed:
        if each.run == run["run_id"] and each.point == "claimed":
            begun.setdefault(each.path, []).append(each.at)
    steps = [
        _step(ground, run, step, begun.get(step["path"], []), counts) for step in run["steps"] if step["kind"] == "tool"
    ]
    return RunTally(
        run["run_id"], tuple(steps), tuple(tool for tool in ground.rehearsal.tools if tool not in run["evidence"])
    )


def _step(
    ground: Ground, run: Mapping[str, Any], step: Mapping[str, Any], begun: list[float], counts: Counts
) -> StepTally:
    called, effect = ground.call_name(run, step), ground.effect_name(run, step)
    done = [attempt for attempt in step["attempts"] if attempt["outcome"] == "COMPLETED"]
    committed = min((instant_of(attempt["ended_at"]) for attempt in done), default=None)
    return StepTally(
        path=step["path"],
        tool=step["name"],
        state=step["state"],
        completed_attempts=len(done),
        acts=len(begun),
        acts_after_commit=0 if committed is None else sum(at > committed for at in begun),
        calls=None if called is None else counts.calls.get(called, 0),
        effects=None if effect is None else counts.effects.get(effect, 0),
    )


def instant_of(text: str) -> float:
    """An instant of the API in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


async def figures(ground: Ground, *run_ids: str) -> dict[str, Any]:
    """What every scenario tells of its runs: calls made of each tool, duplicate effects, decisions accepted."""
    calls: Counter[str] = Counter()
    duplicates = decisions = 0
    for run_id in run_ids:
        count = await tally(ground, run_id)
        calls.update({tool: sum(step.acts for step in count.steps if step.tool == tool) for tool in _tools(count)})
        duplicates += count.duplicates
        decisions += await accepted(ground, run_id)
    return {"calls": dict(calls), "duplicates": duplicates, "decisions_accepted": decisions}


async def accepted(ground: Ground, run_id: str) -> int:
    """Decisions that the run has accepted, on all its reviews."""
    return sum(event["kind"] == "agent.decision_accepted" for event in await ground.api.events(run_id))


def _tools(count: RunTally) -> list[str]:
    return list(dict.fromkeys(step.tool for step in count.steps))
