"""Where a run stands in its graph: all that the engine needs to go on, as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from casework.values import Plain, plain

DEFAULT_TURN_LIMIT = 5

Ended = Literal["COMPLETED", "FAILED"]


@dataclass(frozen=True, slots=True)
class EngineState:
    """The engine's state; every field has a default, so that a state of an older release can be read.

    `context` is what expressions and templates see: `input`, each output under its key, `review` with the last
    decision per node, `errors` with the reason per failed node. All values in it are plain; numbers with a fraction
    are Decimals, so that a state is equal to itself after a journey through JSON.
    """

    current_node: str | None = None
    visits: Mapping[str, int] = field(default_factory=dict)
    loop_count: int = 0
    """Visits of all nodes so far, the present one included."""
    turn: int = 0
    """Visits of AGENT nodes so far, the present one included."""
    turn_limit: int = DEFAULT_TURN_LIMIT
    context: Mapping[str, Any] = field(default_factory=dict)
    answer: Any = None
    """The last answer of an agent: what a reviewer is asked about."""
    output: Any = None
    """What the last AGENT or TOOL node stored."""
    words: str | None = None
    """A reviewer's words that the current AGENT node was reached with."""
    ended: Ended | None = None
    outcome: str | None = None
    reason: str | None = None
    """Why the run FAILED."""

    def to_plain(self) -> dict[str, Plain]:
        """The state as a JSON object."""
        made: dict[str, Plain] = plain(self)
        return made

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> EngineState:
        """The state that `to_plain` wrote; missing fields have their defaults, unknown ones are dropped."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})
