"""The station of a plain Task without effects: all Transactions of a visit are read, worked on and written together.

It is not claimed (decision 0051). Its row in the ledger is written COMPLETED with the Transaction, by one statement for
all that have come to their end. Whatever is out of the ordinary goes the way of every plain Task: a Transaction that is
not what the tray takes it for, a step that is there already, a row that another has written meanwhile. A failure is
claimed after the fact.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from casework.durable.activities.faults import fault_point
from casework.durable.activities.plain_tasks import PlainStation, no_errors, no_family
from casework.durable.activities.services import patiently
from casework.durable.activities.stations import Item, at_once, leaves
from casework.durable.process_contracts import Outcome
from casework.errors import ConflictError, FatalError
from casework.process.working import Reads, Worked, worked
from casework.store.processes import computed_steps
from casework.store.processes.computed_steps import Computed, Seen
from casework.store.processes.task_steps import Begun, TaskStep

WRITES_EVERY_S = 1.0
"""What is done waits no longer than this, and the end of one that is under way, before it is written."""


class ComputingStation(PlainStation):
    """A plain Task without effects."""

    async def together(self, items: Sequence[Item]) -> dict[Item, Outcome]:
        """The outcomes of those that go the ordinary way."""
        steps = {item: self.step(item) for item in items if self.not_ours(item) is None}
        async with self.services.db.autocommit() as conn:
            seen = await computed_steps.look(conn, list(steps.values()))
        batch = _Batch(self, {item: step for item, step in steps.items() if step.step_id in seen}, seen)
        await at_once(batch.work, list(batch.steps))
        await batch.write()
        return batch.made

    async def computed(self, step: TaskStep, found: Seen, started: datetime) -> tuple[Outcome, Computed]:
        """Let the Task work; its errors are its own."""
        assert self.spec is not None
        begun = Begun("begun", 1, None, None, None, found.transaction)
        transaction, ctx = self.placed(found.transaction), self.context(step, begun, started)
        async with self.deadline(), self.services.injector.made(self.spec.cls) as task:
            made: Worked = await worked(task, transaction, ctx, self.services.app.statuses, Reads(no_family, no_errors))
        outcome, end = self.done(step, begun, made, self.now())
        return outcome, Computed(end, found.version, started)

    async def failed(self, item: Item, step: TaskStep, error: BaseException, started: datetime) -> Outcome:
        """Claim the step after the fact, and end it by the failure."""
        begun = await self.claimed(step)
        if (known := self.met(item, begun)) is not None:
            return known
        return await self.written(item, *await self.failure_of(step, begun, error, started))

    async def completed(self, done: Sequence[Computed]) -> frozenset[UUID]:
        """Write them; the steps that were."""

        async def write() -> frozenset[UUID]:
            async with self.services.db.autocommit() as conn:
                return await computed_steps.complete(conn, done)

        try:
            return await patiently(write)
        except (ConflictError, FatalError):  # of one a row is refused: each by itself, on the way of every plain Task
            return frozenset()


class _Batch:
    """What is done of a visit and not written yet."""

    def __init__(self, station: ComputingStation, steps: Mapping[Item, TaskStep], seen: Mapping[UUID, Seen]) -> None:
        self.made: dict[Item, Outcome] = {}
        self.steps = steps
        self._station = station
        self._seen = seen
        self._done: list[tuple[Item, Outcome, Computed]] = []
        self._wrote = time.monotonic()

    async def work(self, item: Item) -> None:
        """One, and a write where it is time for that."""
        step, started = self.steps[item], self._station.now()
        try:
            self._done.append((item, *await self._station.computed(step, self._seen[step.step_id], started)))
        except BaseException as error:
            if leaves(error):
                raise
            self.made[item] = await self._station.failed(item, step, error, started)
        if time.monotonic() - self._wrote > WRITES_EVERY_S:
            await self.write()

    async def write(self) -> None:
        """Write what is done."""
        done, self._done, self._wrote = self._done, [], time.monotonic()
        if not done:
            return
        for item, _, each in done:
            fault_point("acted", f"{each.end.step.path}/{item.uuid}")
        written = await self._station.completed([each for _, _, each in done])
        for item, outcome, each in done:
            if each.end.step.step_id in written:
                self.made[item] = outcome
                fault_point("committed", f"{each.end.step.path}/{item.uuid}")
