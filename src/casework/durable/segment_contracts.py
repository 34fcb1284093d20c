"""What crosses the durable boundary for a segment; the same rules hold as in `contracts`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casework.durable.contracts import Owner


@dataclass(frozen=True)
class Segment:
    """Go through a chain of quick nodes from `state`, whose pending node is at `path`.

    `version` is the run's row's before; each visit has the next one, as in the run itself. `quick` are the tools that
    may be called on the way. It ends by itself after `most_visits`, `most_bytes` of outcomes or `most_ms`.
    """

    owner: Owner
    path: str
    workflow: str
    workflow_version: int
    state: Mapping[str, Any]
    version: int
    quick: tuple[str, ...]
    most_visits: int
    most_bytes: int
    most_ms: int
    recommendation: Any = None
    outbox: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Passed:
    """A visit that a segment has behind it. `value` is the tool's result, or the truth of a CONDITION. All that a
    reader sees of it is written. Times are instants."""

    path: str
    value: Any
    began: str
    ended: str


TOLD = "ToldError"
"""The kind of a fault that ends its step as a model would be told, and the step's row says so."""


@dataclass(frozen=True)
class StepFault:
    """What an attempt failed with, as the engine would be told: the error's kind, its text, whether it is `final`, and
    after how many milliseconds the next attempt may begin, where somebody asked for that."""

    kind: str
    text: str
    final: bool
    pause_ms: int | None = None


@dataclass(frozen=True)
class SegmentReply:
    """The visits, in order, and how the segment ended.

    `full`: by its own bounds; what is due can be the first of another. `begun`: the visit that is due, where its start
    is told already, at the instant `since`. `tried`: whether an attempt of its tool was made, and failed or was lost;
    it is the first of its policy. `fault`: what that failed with, if it could say so. `cut`: more may be written than
    is said here.
    """

    visits: tuple[Any, ...] = ()
    """Each a `Passed`; out of a history each is plain, and `passed` makes one of it."""
    full: bool = False
    begun: str = ""
    tried: bool = False
    fault: StepFault | None = None
    cut: bool = False
    since: str = ""

    def passed(self) -> tuple[Passed, ...]:
        """The visits of a reply that came out of a history. By its type hints a run would take as long to read one as
        to go through it."""
        return tuple(Passed(visit["path"], visit.get("value"), visit["began"], visit["ended"]) for visit in self.visits)
