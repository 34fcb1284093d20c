"""Where a span stands: the ids of its trace and of itself, made of the run and the path.

A run that nobody else traces has the trace of its own id: the UUID without its dashes. The span at a path has an id
made of run and path. So a worker knows the parent of a span that another worker will write days later, and what is
written twice has the same id twice. `Place` is what travels between processes, in the form of W3C Trace Context.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from casework.ids import derived_id

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STATE_LIMIT = 512
"""Characters of a `tracestate` that must be passed on; a longer one may be dropped as a whole."""
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A span's context: trace (128 bits), span (64 bits), whether it is recorded, and vendors' own state."""

    trace_id: int
    span_id: int
    sampled: bool = True
    state: str = ""

    def carrier(self) -> dict[str, str]:
        """The headers that carry it."""
        made = {"traceparent": f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"}
        return {**made, "tracestate": self.state} if self.state else made

    def at(self, run_id: UUID, path: str) -> Place:
        """The place of the span at `path` of a run, in the same trace."""
        return replace(self, span_id=span_id_of(run_id, path))


def place_of(carrier: Mapping[str, str]) -> Place | None:
    """The place that headers (lower-case names) carry; None where they carry none that holds."""
    found = _TRACEPARENT.fullmatch(carrier.get("traceparent", "").strip())
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    state = carrier.get("tracestate", "").strip()
    return Place(int(trace, 16), int(span, 16), bool(int(flags, 16) & 1), state if len(state) <= _STATE_LIMIT else "")


def trace_id_of(run_id: UUID) -> int:
    """The trace of a run that joins no other."""
    return run_id.int


def span_id_of(run_id: UUID, path: str) -> int:
    """The span at `path`; "" is the run itself."""
    return (derived_id(run_id, path, "span").int & _MASK) or 1


def parent_path(path: str) -> str:
    """The path above; "" above the first name."""
    return path.rpartition("/")[0]


def name_at(path: str) -> str:
    """The last name of a path, without its ordinal: there are few of them."""
    return path.rpartition("/")[2].rpartition(".")[0]
