"""The HTTP request that is being answered, as the engine's client sees it.

The span of a request that starts a run belongs into the run's trace, whose id is known only when the run has one. So
the span is written when the request is over; until then this stands for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from casework.telemetry.identity import Place, trace_id_of


def _random_id(bits: int) -> int:
    return random.getrandbits(bits) or 1  # names a span, guards nothing


@dataclass
class RequestSpan:
    """One request: the caller's place, if it sent one, and the run it is about, once that is known.

    `sampled` says whether a trace that begins here is recorded.
    """

    caller: Place | None
    sampled: Callable[[int], bool]
    run_id: UUID | None = None
    span_id: int = field(default_factory=lambda: _random_id(64))
    _trace_id: int = field(default_factory=lambda: _random_id(128))

    def starts(self, run_id: UUID) -> Place:
        """This request starts a run: without a caller's trace they share the run's own. Gives the request's place."""
        self.run_id = run_id
        self._trace_id = trace_id_of(run_id)
        return self.place

    def concerns(self, run_id: UUID) -> Place:
        """This request sends something to a run, which will name the request's place as where that came from."""
        self.run_id = run_id
        return self.place

    @property
    def place(self) -> Place:
        """Where the request's span stands, or will stand."""
        if self.caller is not None:
            return Place(self.caller.trace_id, self.span_id, self.caller.sampled, self.caller.state)
        return Place(self._trace_id, self.span_id, self.sampled(self._trace_id))


REQUEST: ContextVar[RequestSpan | None] = ContextVar("casework_request", default=None)
