"""The Commander's queue of Jobs: one body at a time, the higher priority first, else in the order of submission."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from casework.tasktree.errors import OptionError
from casework.tasktree.states import BODY_OVER

if TYPE_CHECKING:
    from casework.tasktree.job import Job


DEAD_LIMIT = 32
"""Jobs that were ended before their turn and may stay in the queue, if they are less than half of it."""


class JobQueue:
    """Jobs whose bodies are still to run, and the one whose turn it is (`head`)."""

    __slots__ = ("_arrived", "_dead", "_plain", "_ranked", "head")

    def __init__(self) -> None:
        self.head: Job | None = None
        self._plain: deque[Job] = deque()
        self._ranked: list[tuple[int, int, Job]] = []  # a heap: negated priority, order of arrival, Job
        self._arrived = 0
        self._dead = 0  # ended before their turn, perhaps still in the queue

    def put(self, job: Job, priority: int = 0) -> None:
        """Queue `job`; it starts at once where nobody's turn it is."""
        if self.head is None and not self._plain and not self._ranked:
            self.head = job
            job._launch_()
            return
        if priority:
            self._arrived += 1
            heapq.heappush(self._ranked, (-priority, self._arrived, job))
        else:
            self._plain.append(job)
        if self.head is None:
            self._start_next()

    def next_after(self, job: Job) -> None:
        """`job` gives up its turn, if it has it."""
        if self.head is job:
            self._start_next()

    def drop(self, job: Job) -> None:
        """`job` was ended before its turn; it is let go soon, however long the body lasts whose turn it is."""
        self._dead += 1
        if self._dead > DEAD_LIMIT and self._dead * 2 > len(self._plain) + len(self._ranked):
            self._plain = deque(each for each in self._plain if not each._flags_ & BODY_OVER)
            self._ranked = [entry for entry in self._ranked if not entry[2]._flags_ & BODY_OVER]
            heapq.heapify(self._ranked)
            self._dead = 0
        self.next_after(job)

    def forget(self, job: Job) -> None:
        """`job`, the last that was put in, could not be started, or not be put in."""
        if self.head is job:
            self.head = None
        elif self._plain and self._plain[-1] is job:
            self._plain.pop()
        else:
            self._ranked = [entry for entry in self._ranked if entry[2] is not job]
            heapq.heapify(self._ranked)

    def __iter__(self) -> Iterator[Job]:
        """The Jobs that wait, in no particular order."""
        yield from (job for job in self._plain if not job._flags_ & BODY_OVER)
        yield from (job for _, _, job in self._ranked if not job._flags_ & BODY_OVER)

    def _start_next(self) -> None:
        self.head = None
        ranked, plain = self._ranked, self._plain
        while ranked or plain:
            first = ranked and (ranked[0][0] < 0 or not plain)
            job = heapq.heappop(ranked)[2] if first else plain.popleft()
            if not job._flags_ & BODY_OVER:
                self.head = job
                job._launch_()
                return


def checked_priority(priority: object) -> int:
    """`priority` if it is a whole number.

    Raises:
        OptionError: it is something else.
    """
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise OptionError(f"priority={priority!r}: a priority is a whole number, the higher the sooner; 0 is usual.")
    return priority
