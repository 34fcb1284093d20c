"""Where a run stands in its graph: all that the engine needs to go on, as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, Literal, get_args

from casework.errors import StateError
from casework.graph.records import record
from casework.values import Plain, plain, shortened

DEFAULT_TURN_LIMIT = 5

Ended = Literal["COMPLETED", "FAILED"]


@record
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
    """Visits of nodes that start a turn so far (AGENT, and those with an AGENT branch), the present one included."""
    turn_limit: int = DEFAULT_TURN_LIMIT
    context: Mapping[str, Any] = field(default_factory=dict)
    answer: Any = None
    """The last answer of an agent: what a reviewer is asked about."""
    output: Any = None
    """What the last node stored that stores something."""
    words: str | None = None
    """A reviewer's words that the current node was reached with, where it starts a turn."""
    ended: Ended | None = None
    outcome: str | None = None
    reason: str | None = None
    """Why the run FAILED."""

    def entered(
        self, node: str, turn: int, words: str | None, context: Mapping[str, Any], output: Plain, answer: Plain
    ) -> EngineState:
        """The state with one more visit, of `node`, and with what the visit before it brought."""
        # By place: every step makes such a state, and `replace` takes four times as long.
        return EngineState(
            node,
            {**self.visits, node: self.visits.get(node, 0) + 1},
            self.loop_count + 1,
            turn,
            self.turn_limit,
            context,
            answer,
            output,
            words,
            self.ended,
            self.outcome,
            self.reason,
        )

    def to_plain(self) -> dict[str, Plain]:
        """The state as a JSON object."""
        made: dict[str, Plain] = plain(self)
        return made

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> EngineState:
        """The state that `to_plain` wrote; missing fields have their defaults, unknown ones are dropped.

        Raises:
            StateError: a field holds what no state has, so that it is not gone on from.
        """
        known = {f.name for f in fields(cls)}
        found = {name: value for name, value in data.items() if name in known}
        for name, value in found.items():
            if not _FITS[name](value):
                raise StateError(f"A stored state has {name} {shortened(repr(value), 100)}, which no state has.")
        return cls(**found)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_anything(_value: Any) -> bool:
    return True


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "current_node": _is_text,
    "visits": lambda value: isinstance(value, Mapping) and all(_is_count(each) for each in value.values()),
    "loop_count": _is_count,
    "turn": _is_count,
    "turn_limit": _is_count,
    "context": lambda value: isinstance(value, Mapping),
    "answer": _is_anything,
    "output": _is_anything,
    "words": _is_text,
    "ended": lambda value: value in (None, *get_args(Ended)),
    "outcome": _is_text,
    "reason": _is_text,
}
"""What each field of a stored state can be."""
