"""The station of a plain Task: claim, act, commit, as a tool with effects outside is called.

No connection is held while it acts. The attempt that the claim gave is the fence of the commit. Claims and commits of
Transactions that are under way at one time share their trips to the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from casework.agents.tools import Repeat
from casework.durable.activities.faults import fault_point
from casework.durable.activities.services import Services, patiently
from casework.durable.activities.stations import Item, Station, leaves, unfit
from casework.durable.activities.together import Together
from casework.durable.process_contracts import Outcome, TrayWork
from casework.errors import CaseworkError, ConflictError, FatalError, RetryableError
from casework.process.lines import Line
from casework.process.tasks import PlainTask, Task, TaskContext
from casework.process.transactions import Transaction
from casework.process.working import Family, Reads, Worked, applied, worked
from casework.store.processes import task_steps, transactions
from casework.store.processes.task_steps import Begun, Ended, TaskEnd, TaskStep

HELD_UP_S = 1.0
"""So long after its claim an attempt does not act without asking the fence: another may have begun."""


class PlainStation(Station):
    """A plain Task."""

    def __init__(self, services: Services, work: TrayWork, line: Line, now: Callable[[], datetime]) -> None:
        super().__init__(services, work, line, now)
        self.claimed: Together[TaskStep, Begun] = Together(self._begun)
        self._end: Together[TaskEnd, Ended] = Together(self._ended)

    async def work(self, item: Item) -> Outcome:
        """Claim, act, commit."""
        if (other := self.not_ours(item)) is not None:
            return other
        step, at, since = self.step(item), self.now(), time.monotonic()
        begun = await self.claimed(step)
        if (known := self.met(item, begun)) is not None:
            return known
        place = f"{step.path}/{item.uuid}"
        fault_point("claimed", place)
        try:
            outcome, end = self.done(step, begun, await self._act(step, begun, at, since), self.now())
        except BaseException as error:
            if leaves(error) or isinstance(error, _OvertakenError):
                raise
            outcome, end = await self.failure_of(step, begun, error, at)
        fault_point("acted", place)
        try:
            return await self.written(item, outcome, end)
        except (ConflictError, FatalError) as error:  # what the Task made of it cannot be a row
            return await self.written(item, *await self.failure_of(step, begun, error, at))

    async def _act(self, step: TaskStep, begun: Begun, at: datetime, since: float) -> Worked:
        """Let the Task act, or find that it has."""
        assert self.spec is not None
        assert begun.transaction is not None
        transaction, ctx = self.placed(begun.transaction), self.context(step, begun, at)
        async with self.deadline(), self.services.injector.made(self.spec.cls) as task:
            found = await self._found(task, transaction, ctx)
            if found is not None:
                return found
            if self.spec.repeat is Repeat.VERIFY or time.monotonic() - since > HELD_UP_S:
                await self._check(step, begun)
            return await worked(task, transaction, ctx, self.services.app.statuses, Reads(no_family, no_errors))

    async def _found(self, task: Task, transaction: Transaction, ctx: TaskContext) -> Worked | None:
        """What an earlier attempt has done, where the Task can tell."""
        if self.spec is None or self.spec.repeat is not Repeat.VERIFY or ctx.attempt == 1:
            return None
        assert isinstance(task, PlainTask)
        change = await task.verify(transaction, ctx)
        if change is None:
            return None
        return Worked(applied(self.services.app.statuses, transaction, change, ctx.now))

    async def _check(self, step: TaskStep, begun: Begun) -> None:
        """That this attempt may act still.

        Raises:
            _OvertakenError: a newer one has begun, or the step has ended.
        """
        async with self.services.db.transaction() as conn:
            current = await task_steps.current(conn, step)
        if current != begun.attempt:
            raise _OvertakenError(f"attempt {begun.attempt} of {step.path} is not the current one: it does not act")

    async def failure_of(
        self, step: TaskStep, begun: Begun, error: BaseException, started: datetime
    ) -> tuple[Outcome, TaskEnd]:
        """How the step ends by an error of the Task's."""
        before = begun.transaction
        assert before is not None
        root = before.uuid
        if before.parent_uuid is not None:
            async with self.services.db.transaction() as conn:
                root = await transactions.root(conn, before)
        entity = self.entity(before, error, root, started)
        return self.failure(step, begun, error, entity)

    async def written(self, item: Item, outcome: Outcome, end: TaskEnd) -> Outcome:
        """Commit. One that was taken from the tray meanwhile leaves it as it is."""
        met = await self._end(end)
        if met == "overtaken":
            raise RetryableError(f"attempt {end.attempt} of {end.step.path} came too late; its result is not used")
        if met == "written":
            fault_point("committed", f"{end.step.path}/{item.uuid}")
            return outcome
        async with self.services.db.transaction() as conn:
            now = await transactions.get(conn, self.asked.tenant, item.uuid)
        return unfit(item.uuid, now, self.asked.claim_id)

    async def _begun(self, steps: list[TaskStep]) -> Sequence[Begun]:
        async with self.services.db.transaction() as conn:
            return await task_steps.begin_all(conn, steps)

    async def _ended(self, ends: list[TaskEnd]) -> Sequence[Ended | Exception]:
        """Together, or one by one where the database refuses a row of one."""

        async def write(some: list[TaskEnd]) -> Sequence[Ended]:
            async with self.services.db.transaction() as conn:
                return await task_steps.end_all(conn, some)

        try:
            return await patiently(lambda: write(ends))
        except (ConflictError, FatalError):
            made: list[Ended | Exception] = []
            for end in ends:
                try:
                    made += await patiently(lambda end=end: write([end]))  # type: ignore[misc]  # a default binds it
                except CaseworkError as error:
                    made.append(error)
            return made


class _OvertakenError(RetryableError):
    """A newer attempt has begun."""


async def no_family(_: Transaction) -> Family:
    """A plain Task joins nothing."""
    return Family(0)


async def no_errors(_: Transaction) -> tuple[()]:
    """A plain Task handles none."""
    return ()
