"""Calls that came when their result was committed already, and whether an overtaken attempt made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casework.durable.activities.faults import OVER, Passed


@dataclass(frozen=True)
class Span:
    """When a step was begun, and when its result was committed (None: it was not); seconds since the epoch.

    Both are the database's, a time of arrival is the destination's. One machine, one clock: a call arrives before its
    answer is committed, so no margin is needed.
    """

    begun: float
    committed: float | None

    def open_at(self, moment: float) -> bool:
        """Whether a call of the step may arrive."""
        return self.begun <= moment and (self.committed is None or moment <= self.committed)


def late(arrivals: Iterable[float], mine: Span, others: Sequence[Span]) -> int:
    """Calls after the result of `mine` was committed. `others` are steps whose calls have the same name there.

    A call when none of them is open belongs to the one that was begun last.
    """
    spans = [mine, *others]
    return sum(
        not any(span.open_at(at) for span in spans)
        and mine.begun <= at
        and not any(mine.begun < other.begun <= at for other in others)
        for at in arrivals
    )


def overtaken(passed: Iterable[Passed], committed: float) -> int:
    """Attempts of one step that were alive when another one committed, and that ended later.

    Such an attempt may have been on its way to the destination. Lines that one process wrote down tell: it was claimed
    before, its end came after, and it is not the one that committed.
    """
    by_process: dict[int, list[Passed]] = {}
    for each in passed:
        by_process.setdefault(each.pid, []).append(each)
    return sum(_outliving(lines, committed) for lines in by_process.values())


def _outliving(lines: Sequence[Passed], committed: float) -> int:
    def count(point: str, *, before: bool) -> int:
        return sum(line.point == point and (line.at <= committed) == before for line in lines)

    alive = count("claimed", before=True) - count(OVER, before=True)
    own = sum(line.point == "committed" for line in lines)
    return max(0, min(alive, count(OVER, before=False)) - own)
