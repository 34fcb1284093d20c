"""What crosses between the plain workflow and its activities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WORKFLOW = "plain.loan"
START_TOOL = "plain.start_tool"
CALL_TOOL = "plain.call_tool"
WRITE_RESULT = "plain.write_result"
CALL_MODEL = "plain.call_model"
WRITE_MESSAGES = "plain.write_messages"
WRITE_METRIC = "plain.write_metric"
WRITE = "plain.write"


@dataclass(frozen=True)
class Start:
    """The case: no manifest travels with it, since the workflow is code."""

    run_id: str
    tenant: str
    user: str
    input: Mapping[str, Any]
    workflow_version: int


@dataclass(frozen=True)
class Place:
    """Whose step, and where."""

    tenant: str
    run_id: str
    path: str


@dataclass(frozen=True)
class Asked:
    """A tool that the model asked for."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The model's answer."""

    text: str
    requests: tuple[Asked, ...] = ()
    output: Any = None
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class Ask:
    """Ask the model; the transcript is read from the table up to `up_to`, `say` is what is not written yet."""

    place: Place
    up_to: int
    say: str | None = None


@dataclass(frozen=True)
class ToolStart:
    """Write that a tool is called."""

    place: Place
    asked: Asked


@dataclass(frozen=True)
class ToolRun:
    """Call it."""

    place: Place
    asked: Asked
    attempt: int
    workflow_version: int


@dataclass(frozen=True)
class ToolEnd:
    """Write what it said, with its message."""

    place: Place
    asked: Asked
    attempt: int
    position: int
    result: Any


@dataclass(frozen=True)
class Messages:
    """Write the answer, and before it what the user said."""

    place: Place
    position: int
    answer: Answer
    say: str | None = None


@dataclass(frozen=True)
class Metric:
    """Count a model call."""

    place: Place
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Write:
    """Write entries of the projection: an event, a review, a decision, a state."""

    place: Place
    entries: tuple[Mapping[str, Any], ...] = field(default=())
