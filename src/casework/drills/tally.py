"""What really happened in a run, put together from three sides: the ledger, the destination, the workers' own lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from casework.drills.arrivals import Span, late, overtaken
from casework.drills.destination import Counts
from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.durable.activities.faults import Passed

SHOWN = 3
"""Runs that are named where a promise did not hold."""


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
    """None: its calls do not go there."""
    calls_after_commit: int
    """Calls that arrived when the result was committed; 0 where the destination tells no times."""
    calls_of_overtaken: int
    """Such calls that an attempt made which was alive when another committed; they are not in the other figure."""
    effects: int | None
    """At the destination, or in the application's own table; None: it has none."""
    called: str | None = None
    """What the destination calls its calls. Steps that only set or read something of one subject share it."""


@dataclass(frozen=True)
class RunTally:
    """The tool steps of one run; `missing` tools have no result."""

    run_id: str
    steps: tuple[StepTally, ...]
    missing: tuple[str, ...]

    @property
    def called_again(self) -> int:
        """Acts after their result was committed, by worker or destination, whoever saw more; promised are none."""
        return sum(max(step.acts_after_commit, step.calls_after_commit) for step in self.steps)

    @property
    def unbegun(self) -> int:
        """Calls beyond the acts that workers began; the promise is that there are none."""
        acts, calls = Counter[str](), dict[str, int]()
        for step in self.steps:
            if step.called is not None and step.calls is not None:
                acts[step.called] += step.acts
                calls[step.called] = step.calls
        return sum(max(0, number - acts[name]) for name, number in calls.items())

    @property
    def lost(self) -> int:
        """Completed steps whose effect did not happen; the promise is that there are none."""
        return sum(step.state == "COMPLETED" and step.effects == 0 for step in self.steps)

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
    lines: dict[str, list[Passed]] = {}
    for each in passed:
        if each.run == run["run_id"]:
            lines.setdefault(each.path, []).append(each)
    steps = [
        _step(ground, run, step, lines.get(step["path"], []), counts) for step in run["steps"] if step["kind"] == "tool"
    ]
    return RunTally(
        run["run_id"], tuple(steps), tuple(tool for tool in ground.rehearsal.tools if tool not in run["evidence"])
    )


def _step(
    ground: Ground, run: Mapping[str, Any], step: Mapping[str, Any], lines: Sequence[Passed], counts: Counts
) -> StepTally:
    called, effect = ground.call_name(run, step), ground.effect_name(run, step)
    committed = _span(step).committed
    begun = [line.at for line in lines if line.point == "claimed"]
    after = _late(ground, run, step, called, counts)
    excused = 0 if committed is None else min(after, overtaken(lines, committed))
    return StepTally(
        path=step["path"],
        tool=step["name"],
        state=step["state"],
        completed_attempts=len(_completed(step)),
        acts=len(begun),
        acts_after_commit=0 if committed is None else sum(at > committed for at in begun),
        calls=None if called is None else counts.calls.get(called, 0),
        calls_after_commit=after - excused,
        calls_of_overtaken=excused,
        effects=None if effect is None else counts.effects.get(effect, 0),
        called=called,
    )


def _late(ground: Ground, run: Mapping[str, Any], step: Mapping[str, Any], called: str | None, counts: Counts) -> int:
    """Calls of a step that arrived after its result was committed, as the destination tells."""
    if called is None or counts.arrivals is None:
        return 0
    others = [
        _span(other)
        for other in run["steps"]
        if other["kind"] == "tool" and other["path"] != step["path"] and ground.call_name(run, other) == called
    ]
    return late(counts.arrivals.get(called, ()), _span(step), others)


def _span(step: Mapping[str, Any]) -> Span:
    # A step that was given up before any worker claimed it has no attempt.
    begun = min((instant_of(attempt["started_at"]) for attempt in step["attempts"]), default=0.0)
    return Span(begun, min((instant_of(attempt["ended_at"]) for attempt in _completed(step)), default=None))


def _completed(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [attempt for attempt in step["attempts"] if attempt["outcome"] == "COMPLETED"]


def promise_calls(report: Report, tallies: Sequence[RunTally]) -> None:
    """What every drill promises of calls, whatever it kills: read from the destination, and from the workers' lines."""
    again, unbegun = [each for each in tallies if each.called_again], [each for each in tallies if each.unbegun]
    report.counts.update(
        committed_called_again=sum(tally.called_again for tally in tallies),
        calls_of_overtaken=sum(step.calls_of_overtaken for tally in tallies for step in tally.steps),
        calls_without_act=sum(tally.unbegun for tally in tallies),
    )
    for text, count, broken in (
        ("No committed result was called again", "committed_called_again", again),
        ("The destination has no call that no worker began", "calls_without_act", unbegun),
    ):
        where = f" in {', '.join(tally.run_id for tally in broken[:SHOWN])}" if broken else ""
        report.promise(text, not broken, f"{report.counts[count]}{where}")


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
