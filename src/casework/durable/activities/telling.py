"""What a sweep tells: its counts, and one line in the log for each kind of thing that it found."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from casework.durable.activities.sorting import Findings
from casework.durable.contracts import SweepReport

NAMED = 10
"""Most runs that one line names."""


@dataclass
class Told:
    """Gathered while the sweep works."""

    log: logging.Logger
    started: int = 0
    stuck: int = 0
    left: int = 0
    incidents: int = 0
    failed: list[str] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)

    def say(self) -> None:
        """One line for each kind."""
        self._line(self.failed, "closed as FAILED: their Temporal workflows are gone or ended without them")
        self._line(self.flagged, "cannot go on, and bear an incident")
        self._line(self.behind, "had rows older than themselves and were asked to write them again")
        self._line(self.restored, "were open in the engine without a row; their rows were made again")
        self._line(
            self.unknown,
            "are open in the engine without a row, and none can be made; cancel them with Temporal's tools",
        )
        self._line(self.stopped, "were open in the engine though their rows have ended, and were asked to stop")

        self._line(
            self.orphaned,
            "are open in the engine though their rows were closed because it did not have them. They are not stopped: "
            "look at them, end them with Temporal's tools and start others",
        )

    def _line(self, which: Sequence[str], what: str) -> None:
        if which:
            more = f" and {len(which) - NAMED} more" if len(which) > NAMED else ""
            self.log.warning("%d runs %s: %s%s", len(which), what, "; ".join(which[:NAMED]), more)

    def report(self, findings: Findings) -> SweepReport:
        """The counts."""
        return SweepReport(
            started=self.started,
            failed=len(self.failed),
            seen=findings.seen,
            stuck=self.stuck,
            behind=len(self.behind),
            restored=len(self.restored),
            unknown=len(self.unknown),
            stopped=len(self.stopped),
            orphaned=len(self.orphaned),
            incidents=self.incidents,
            left=findings.left + self.left,
            whole=findings.whole,
        )
