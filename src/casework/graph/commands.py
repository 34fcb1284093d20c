"""What the engine and its driver say to each other: commands out, outcomes in. Plain frozen data, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunAgent:
    """Run the node's agent for one turn.

    `words` are a reviewer's, to be said as a user message. `render` says whether the node's input template is
    rendered and said: on its first visit, and on a later one that brings no words. Both may be due: template first.
    """

    node: str
    visit: int
    turn: int
    words: str | None = None
    render: bool = True


@dataclass(frozen=True, slots=True)
class RunTool:
    """Call the node's tool with its rendered arguments."""

    node: str
    visit: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Evaluate a CONDITION's expression over the context (`engine.evaluate` does it)."""

    node: str
    visit: int
    expression: str


@dataclass(frozen=True, slots=True)
class AwaitDecision:
    """Wait for a person. `decisions` are all names there are, `refused` those refused now, each with the reason."""

    node: str
    visit: int
    decisions: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Complete:
    """The run is COMPLETED. `outcome` is the deciding decision's, `output` what the last node stored."""

    outcome: str | None = None
    output: Any = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The run is FAILED; `node` is where, or None before the first."""

    reason: str
    node: str | None = None


Command = RunAgent | RunTool | Evaluate | AwaitDecision | Complete | Fail


@dataclass(frozen=True, slots=True)
class Answered:
    """An agent's answer."""

    output: Any


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's result."""

    result: Any


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A CONDITION's value; anything but a truth value fails the node."""

    value: Any


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that was accepted."""

    decision: str
    reason: str
    reviewer: str


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """The node did not succeed: `error` is text for a reader."""

    error: str


Outcome = Answered | Returned | Evaluated | Decided | NodeFailed
