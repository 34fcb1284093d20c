"""What a sweep has found: open rows and open Temporal workflows, sorted by what is to be done about each."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from casework.durable.activities.engine_side import EngineRun, problem_words
from casework.store.sweeping import KnownRow, OpenRow

Case = TypeVar("Case")


@dataclass(frozen=True)
class Ages:
    """How old something is before the sweep looks at it, and how much one sweep does."""

    pending: timedelta = timedelta(seconds=10)
    """A younger row is still being started by the API."""
    quiet: timedelta = timedelta(seconds=30)
    """A younger run may not be in the engine's list yet; an ended row's run may still be closing."""
    still: timedelta = timedelta(minutes=2)
    """A row that has said something later than this is not doubted."""
    step: timedelta = timedelta(minutes=10)
    """A step in flight that has not moved for longer excuses no silence."""
    stuck: timedelta = timedelta(minutes=5)
    """A row that is PENDING for longer is an incident."""
    rest: float = 9.0
    """How many times as long as it took to list the open runs the next list has to wait: it is work for the engine."""
    agreed: timedelta = timedelta(minutes=10)
    """So long after a list the next one waits, as long as engine and rows count the same."""
    part_s: float = 25.0
    """Seconds for each part of a sweep."""
    questions: int = 20
    """Most runs that one sweep asks where they stand: a question may bring a run back into a worker's memory."""
    waiting_questions: int = 3
    """Most of them that wait for a person, as long as every run that was asked agrees with its row."""
    at_once: int = 4
    many_gone: int = 20
    """More open rows than this that are gone at once, and most of all, are no accident of single runs."""


class Findings:
    """The cases of one sweep. Without the engine's list it is not whole: only rows left PENDING are cases."""

    def __init__(self, now: datetime, ages: Ages, queue: str, open_in_engine: dict[str, EngineRun] | None) -> None:
        self.now = now
        self.whole = open_in_engine is not None
        self._ages = ages
        self._queue = queue
        self._engine = open_in_engine or {}
        self.seen = 0
        self.left = 0
        self.pending: list[OpenRow] = []
        self.missing: list[OpenRow] = []
        self.asked = 0
        self.gone: list[OpenRow] = []
        self.held: list[tuple[OpenRow, str]] = []
        self.released: list[OpenRow] = []
        self.doubted: list[OpenRow] = []
        self.still: list[OpenRow] = []
        self.waiting: list[OpenRow] = []
        self.disagree = False
        """Whether a run that was asked stands elsewhere than its row says."""
        self.elsewhere: dict[str, list[OpenRow]] = defaultdict(list)
        self.pending_elsewhere: dict[str, list[OpenRow]] = defaultdict(list)
        self.without_row: list[EngineRun] = []
        self.ended: list[KnownRow] = []

    def sort(self, row: OpenRow) -> None:
        """Put an open row where it belongs; most belong nowhere, because all is well."""
        self.seen += 1
        found = self._engine.pop(str(row.run_id), None)
        if found is None:
            self._not_listed(row)
        elif found.problems:
            self.held.append((row, problem_words(found.problems)))
        elif found.queue != self._queue:
            self.elsewhere[found.queue].append(row)
        else:
            kind = None if row.incident is None else row.incident.get("kind")
            if kind == "engine":
                self.released.append(row)
            if kind == "rows":
                self.doubted.append(row)
            else:
                self._open_in_both(row)

    def sort_agreeing(self, row: OpenRow) -> None:
        """As `sort`, where engine and rows are known to agree: there are no other cases than these."""
        if row.status == "PENDING":
            self._not_listed(row)
        else:
            self._open_in_both(row)

    def _open_in_both(self, row: OpenRow) -> None:
        if self.now - row.updated_at > self._ages.still:
            (self.waiting if row.status == "AWAITING_REVIEW" else self.still).append(row)

    def _not_listed(self, row: OpenRow) -> None:
        age = self.now - row.created_at
        if row.status == "PENDING":
            if row.task_queue not in (None, self._queue):
                if age > self._ages.stuck:
                    self.pending_elsewhere[str(row.task_queue)].append(row)
            elif age > self._ages.pending:
                self.pending.append(row)
        elif self.whole and age > self._ages.quiet:
            self.missing.append(row)

    def many_gone(self) -> bool:
        """Whether most open rows are gone at once; what was not asked for is counted as what was."""
        gone = len(self.gone)
        if gone <= self._ages.many_gone:
            return False
        return 2 * gone / self.asked * len(self.missing) > self.seen - len(self.pending)

    def leftovers(self) -> list[UUID]:
        """Ids of open runs of our task queue that no open row was found for; what bears no id of a run has none."""
        old = self.now - self._ages.quiet
        self._engine = {
            run_id: run for run_id, run in self._engine.items() if run.queue == self._queue and run.started < old
        }
        return [made for made in map(_uuid, self._engine) if made is not None]

    def sort_leftovers(self, known: Iterable[KnownRow]) -> None:
        """Runs whose row has ended, some time ago, and runs without one."""
        for row in known:
            self._engine.pop(str(row.run_id), None)
            if row.ended_at is not None and self.now - row.ended_at > self._ages.quiet:
                self.ended.append(row)
        self.without_row = list(self._engine.values())

    def chosen(self, busy: set[UUID]) -> list[OpenRow]:
        """Rows to be compared with their runs, as many as one sweep may ask; half of them may bear the flag already.

        Of those that wait for a person only a few: they are many, and each has to be brought back into memory.
        """
        first = [row for row in self.still if row.run_id not in busy]
        most = self._ages.questions
        chosen = random.sample(self.doubted, min(most // 2, len(self.doubted)))
        chosen += random.sample(first, min(most - len(chosen), len(first)))
        random.shuffle(self.waiting)
        return chosen + self._next_waiting(min(most - len(chosen), self._ages.waiting_questions))

    def further(self) -> list[OpenRow]:
        """More of those that wait for a person, to be asked where one of the chosen did not agree with its run."""
        return self._next_waiting(self._ages.questions)

    def _next_waiting(self, most: int) -> list[OpenRow]:
        made, self.waiting = self.waiting[:most], self.waiting[most:]
        return made

    async def each(self, cases: Sequence[Case], work: Callable[[Case], Awaitable[None]]) -> None:
        """Work on the cases, several at once, in random order, as far as the time of a part goes."""
        until = time.monotonic() + self._ages.part_s
        waiting = random.sample(cases, len(cases))

        async def some() -> None:
            while waiting and time.monotonic() < until:
                await work(waiting.pop())

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._ages.at_once, len(cases))):
                    group.create_task(some())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        self.left += len(waiting)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
