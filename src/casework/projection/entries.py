"""The kinds of entries, one per table they end in. Times are ISO-8601 UTC instants, ids are texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

Status = Literal["PENDING", "RUNNING", "AWAITING_REVIEW", "COMPLETED", "FAILED", "CANCELLED"]


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The run's row as a whole, from `version` on: applied only over a lower version and an open row."""

    version: int
    status: Status
    turn: int
    loop_count: int
    at: str
    current_node: str | None = None
    recommendation: Any = None
    outcome: str | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class EventEntry:
    """A numbered milestone. The store gives it its `seq` under the run's row lock."""

    path: str
    kind: str
    at: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """One row of the transcript. `position` counts from 1 over the run, assigned by the workflow, without holes.

    A `note` stands where a failed step left no message; it is written only if the position is still empty, and no
    model reads it.
    """

    path: str
    position: int
    agent: str
    role: Literal["user", "assistant", "tool", "note"]
    content: str
    at: str
    call_id: str | None = None
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """One output of a node; per key the highest `version` counts."""

    path: str
    key: str
    version: int
    value: Any
    at: str


@dataclass(frozen=True, slots=True)
class ReviewEntry:
    """A question to a person, pending until a DecisionEntry is accepted or the run closes.

    `decisions` are the names the reviewer may choose from, `refused` those refused now, with the reason.
    """

    path: str
    review_id: str
    node: str
    turn: int
    decisions: tuple[str, ...]
    at: str
    recommendation: Any = None
    note: str | None = None
    refused: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """An answer that reached the run: accepted, or ignored with the reason why."""

    path: str
    review_id: str
    decision_id: str
    command: str
    reason: str
    reviewer: str
    at: str
    accepted: bool
    ignored: str | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class StepEntry:
    """A ledger row that the workflow writes itself: a decision, a call it refused, a step it gave up.

    Applied as an insert, or over a row that is still STARTED.
    """

    path: str
    kind: Literal["tool", "model", "decision"]
    name: str
    state: Literal["COMPLETED", "FAILED"]
    at: str
    result: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line for the reader of the run."""

    path: str
    node: str
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    message: str
    at: str


Entry = RunEntry | EventEntry | MessageEntry | ContextEntry | ReviewEntry | DecisionEntry | StepEntry | LogEntry

_KINDS: dict[str, type[Entry]] = {
    "run": RunEntry,
    "event": EventEntry,
    "message": MessageEntry,
    "context": ContextEntry,
    "review": ReviewEntry,
    "decision": DecisionEntry,
    "step": StepEntry,
    "log": LogEntry,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}


def to_plain(entry: Entry) -> dict[str, Any]:
    """The entry as a JSON object; absent fields are left out, `entry` names the kind."""
    parts = ((f.name, getattr(entry, f.name)) for f in fields(entry))
    return {"entry": _NAMES[type(entry)], **{name: value for name, value in parts if value is not None}}


def from_plain(data: Mapping[str, Any]) -> Entry:
    """The entry that `to_plain` wrote; fields of a newer release are ignored, so that workers may differ.

    Raises:
        KeyError: the kind of entry is not known.
    """
    cls = _KINDS[data["entry"]]
    known = {f.name for f in fields(cls)}
    values = {name: value for name, value in data.items() if name in known}
    if cls is ContextEntry:
        values.setdefault("value", None)  # an output that is null was left out
    if cls is ReviewEntry:
        values["decisions"] = tuple(values["decisions"])
    return cls(**values)
