"""What a write answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["written", "noop", "stale"]


@dataclass(frozen=True, slots=True)
class WriteResult:
    """`rows` touched, and what that means.

    written: the row is as asked. noop: it was so already, or is terminal; nothing to do. stale: a newer version or
    attempt was there first; the row stands, and the lateness is recorded. What fits none of these is raised as
    ConflictError.
    """

    rows: int
    outcome: Outcome


WRITTEN = WriteResult(1, "written")
NOOP = WriteResult(0, "noop")
STALE = WriteResult(0, "stale")
