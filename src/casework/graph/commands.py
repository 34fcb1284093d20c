"""What the engine and its driver say to each other: commands out, outcomes in. Plain frozen data, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from casework.graph.records import record


@record
class RunAgent:
    """Run the node's agent for one turn.

    `words` are a reviewer's, to be said as a user message. `render` says whether the node's input template is
    rendered and said: on its first visit, and on a later one that brings no words. Both may be due: template first.
    In a branch the agent begins anew, without the messages of other visits and branches, so its template is always due.
    """

    node: str
    visit: int
    turn: int
    words: str | None = None
    render: bool = True


@record
class RunTool:
    """Call the node's tool with its rendered arguments."""

    node: str
    visit: int


@record
class Evaluate:
    """Evaluate a CONDITION's expression over the context (`engine.evaluate` does it)."""

    node: str
    visit: int
    expression: str


@record
class AwaitDecision:
    """Wait for a person. `decisions` are all names there are, `refused` those refused now, each with the reason."""

    node: str
    visit: int
    decisions: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


@record
class RunSubworkflow:
    """Run the named workflow or free tree as a run of its own, with rendered arguments as its input, to its end."""

    node: str
    visit: int
    workflow: str


@record
class Wait:
    """Wait: `duration_s` seconds, for the signal of that name, or for whichever comes first where both are given."""

    node: str
    visit: int
    duration_s: float | None = None
    signal: str | None = None


Work = RunAgent | RunTool | RunSubworkflow | AwaitDecision | Wait
"""What a branch can ask for. There, `node` is the branch's id, and `visit` its ordinal."""


@record
class Branch:
    """One branch of a visit: its step in the path is `<name>.<ordinal>`.

    `item` and `index` are those of a MAP, for its templates (`engine.scope`); `index` is None in a PARALLEL.
    """

    name: str
    ordinal: int
    command: Work
    item: Any = None
    index: int | None = None

    @property
    def step(self) -> str:
        """The last part of its path."""
        return f"{self.name}.{self.ordinal}"


@record
class RunBranches:
    """Carry out the commands of all branches, started in this order, at most `max_parallel` under way at one time.

    The outcome is `Joined`, when all have ended, also where some failed. There may be none at all.
    """

    node: str
    visit: int
    branches: tuple[Branch, ...]
    max_parallel: int


@record
class Complete:
    """The run is COMPLETED. `outcome` is that of the decision or edge that ended it, `output` what was stored last."""

    outcome: str | None = None
    output: Any = None


@record
class Fail:
    """The run is FAILED; `node` is where, or None before the first."""

    reason: str
    node: str | None = None

    @property
    def told(self) -> str:
        """The reason with its node, where it does not name it."""
        named = self.node is None or self.reason.startswith(self.node) or repr(self.node) in self.reason
        return self.reason if named else f"{self.node}: {self.reason}"


Due = RunAgent | RunTool | Evaluate | AwaitDecision | RunBranches | RunSubworkflow | Wait
"""Commands that a visit carries out."""
Command = Due | Complete | Fail
"""A visit's command, or the end of the run."""


@record
class Answered:
    """An agent's answer."""

    output: Any


@record
class Returned:
    """A tool's result."""

    result: Any


@record
class Evaluated:
    """A CONDITION's value; anything but a truth value fails the node."""

    value: Any


@record
class Decided:
    """A decision that was accepted."""

    decision: str
    reason: str
    reviewer: str


@record
class Ended:
    """A run of a SUBWORKFLOW has ended COMPLETED; one that did not is a `NodeFailed`."""

    outcome: str | None = None
    output: Any = None


@record
class Signalled:
    """The signal came, with a plain payload."""

    payload: Any = None


@record
class TimedOut:
    """The time of a WAIT has passed."""


@record
class NodeFailed:
    """The node, or the branch, did not succeed: `error` is text for a reader."""

    error: str


Result = Answered | Returned | Decided | Ended | Signalled | TimedOut | NodeFailed
"""What a branch can come back with."""


@record
class Joined:
    """All branches have ended: what each came back with, in their order."""

    results: tuple[Result, ...] = ()


Outcome = Result | Evaluated | Joined
"""What a visit can come back with."""
