"""What a run tells its readers: the one place that makes outbox entries, versions and transcript positions.

The run's row is written as a whole, each time with the next version. The tree's listener feeds the journal with the
starts and ends of visits; what an activity does inside a visit it records itself, together with its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from temporalio import workflow

from casework.durable.contracts import RunEnd
from casework.durable.workflows.failures import reason_of
from casework.projection import (
    ContextEntry,
    DecisionEntry,
    Entry,
    EventEntry,
    LogEntry,
    Outbox,
    ReviewEntry,
    RunEntry,
    StepEntry,
    from_plain,
    to_plain,
)
from casework.projection.entries import Status
from casework.tasktree import Job, Stage, TaskNode
from casework.values import dumps, instant

Asked = ReviewEntry | DecisionEntry | StepEntry
"""What is told again of questions and answers."""
IGNORED_BYTES = 256 * 1024
"""Of ignored decisions, as JSON, the newest that a run still tells again after it has rolled over."""


def now() -> str:
    """The engine's clock: the same instant on every replay."""
    return instant(workflow.now())


class Journal:
    """Entries of one run, in order."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.recommendation: Any = None
        self.status: Status = "PENDING"
        self._version = 0
        self._position = 0
        self._turn = 0
        self._loops = 0
        self._node: str | None = None
        self._row: RunEntry | None = None
        self._asked: list[Asked] = []
        self._outputs: dict[str, ContextEntry] = {}
        self._visit_since = ""
        self._reserved = 0
        self._told = ""
        self.resumed = ""
        """The path of the visit that was at rest when this part of the run began: its start is told already."""

    @property
    def version(self) -> int:
        """The version of the last row made; 0 before the first."""
        return self._version

    @property
    def position(self) -> int:
        """The last transcript position given out."""
        return self._position

    def next_position(self) -> int:
        """The next free transcript position."""
        self._position += 1
        return self._position

    def add(self, *entries: Entry) -> None:
        """Put entries in the outbox as they are."""
        for entry in entries:
            if isinstance(entry, (ReviewEntry, DecisionEntry)) or (
                isinstance(entry, StepEntry) and entry.kind == "decision"
            ):
                self._asked.append(entry)
        self.outbox.add(*entries)

    def tell_again(self) -> None:
        """Put the run as it stands into the outbox once more: outputs, questions and answers, then the row.

        For rows that are older than the run, as in a restored database. What is there already is left as it is.
        """
        if self._row is None:
            return
        self._next_version()
        self._row = replace(self._row, version=self._version, at=now())
        self.event("", f"agent.run_told_again:{self._version}", {"status": self._row.status})
        self.outbox.add(*self._outputs.values(), *self._asked, self._row)

    def carried(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """All but the outbox, for the next part. Outputs that are in the graph's `context` are not written twice."""
        return {
            "version": self._version,
            "position": self._position,
            "turn": self._turn,
            "loops": self._loops,
            "node": self._node,
            "status": self.status,
            "visit_since": self._visit_since,
            "recommendation": self.recommendation,
            "row": None if self._row is None else to_plain(replace(self._row, recommendation=None)),
            "asked": [to_plain(entry) for entry in _worth_telling(self._asked)],
            "outputs": [_without_value(entry, context) for entry in self._outputs.values()],
        }

    def take_over(self, carried: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Go on from what `carried` says."""
        self._version, self._position = carried["version"], carried["position"]
        self.enter(carried["node"], carried["turn"], carried["loops"])
        self.status, self.recommendation = carried["status"], carried["recommendation"]
        self._visit_since = carried.get("visit_since", "")
        if carried["row"] is not None:
            row = cast("RunEntry", from_plain(carried["row"]))
            self._row = replace(row, recommendation=self.recommendation)
        self._asked = [cast("Asked", from_plain(entry)) for entry in carried["asked"]]
        for plain in carried["outputs"]:
            entry = cast("ContextEntry", from_plain({"value": context.get(plain["key"]), **plain}))
            self._outputs[entry.key] = entry

    def event(self, path: str, kind: str, data: Any = None) -> None:
        """A milestone at `path`."""
        self.add(EventEntry(path, kind, now(), data))

    def log(self, path: str, level: Any, message: str) -> None:
        """A line for the reader of the run."""
        self.add(LogEntry(path, self._node or "", level, message, now()))

    def enter(self, node: str | None, turn: int, loops: int) -> None:
        """The run's place in the graph has changed; the row follows with `run`."""
        self._node, self._turn, self._loops = node, turn, loops

    def run(self, status: Status, *, outcome: str | None = None, failure: str | None = None) -> None:
        """The run's row as it is from now on."""
        self.add(self._made(status, outcome, failure))

    def _made(self, status: Status, outcome: str | None = None, failure: str | None = None) -> RunEntry:
        self._next_version()
        self.status = status
        self._row = RunEntry(
            version=self._version,
            status=status,
            turn=self._turn,
            current_node=self._node,
            loop_count=self._loops,
            at=now(),
            recommendation=self.recommendation,
            outcome=outcome,
            failure=failure,
        )
        return self._row

    def _next_version(self) -> None:
        self._version = max(self._version, self._reserved) + 1

    def reserve(self, count: int) -> int:
        """Leave the next `count` versions to a segment; those after which it begins."""
        self._reserved = self._version + count
        return self._version

    def give_back(self, version: int) -> None:
        """The segment that began after `version` has said what it used: `passed` counts it."""
        if self._version == version:
            self._reserved = 0

    def passed(self, path: str) -> None:
        """A segment has told of the visit at `path`, from its start to its end, in the run's row and otherwise."""
        self._told = path
        self._made("RUNNING")

    def told_output(self, path: str, key: str, visit: int, value: Any) -> None:
        """An output that a segment has written."""
        self._outputs[key] = ContextEntry(path, key, visit, value, now())

    def end(self, end: RunEnd) -> None:
        """The last that the run says."""
        self.event("", f"agent.run_{end.status.lower()}", {"outcome": end.outcome, "failure": end.failure})
        self.run(end.status, outcome=end.outcome, failure=end.failure)

    def output(self, path: str, key: str, visit: int, value: Any) -> None:
        """A node's output under its key."""
        self.told_output(path, key, visit, value)
        self.add(self._outputs[key])

    def on_stage(self, node: TaskNode, stage: Stage) -> None:
        """The tree's listener: visits of graph nodes become events."""
        if not isinstance(node, Job) or node.path == self._told:
            return
        if stage is Stage.AT_JOB_START and node.path == self.resumed:
            self.resumed = ""
        elif stage is Stage.AT_JOB_START:
            self._visit_since = now()
            self.event(node.path, "agent.node_started", {"node": node.name})
        elif stage is Stage.AT_EXCEPTION:
            self.event(node.path, "agent.node_failed", {"node": node.name, "error": reason_of(node.exception)})
        elif stage is Stage.AT_TERMINATE:
            self.event(node.path, "agent.node_terminated", {"node": node.name})
        elif stage is Stage.AT_JOB_END and node.exception is None:
            self.event(node.path, "agent.node_completed", {"node": node.name})


def _without_value(entry: ContextEntry, context: Mapping[str, Any]) -> dict[str, Any]:
    plain = to_plain(entry)
    if entry.key in context and context[entry.key] == entry.value:
        plain.pop("value", None)
        return plain
    return {**plain, "value": entry.value}


def _worth_telling(asked: Sequence[Asked]) -> list[Asked]:
    """All questions and the answers that counted; of the ignored ones the newest."""
    kept: list[Asked] = []
    room = IGNORED_BYTES
    for entry in reversed(asked):
        if isinstance(entry, DecisionEntry) and not entry.accepted:
            room -= len(dumps(to_plain(entry)))
            if room < 0:
                continue
        kept.append(entry)
    return kept[::-1]
