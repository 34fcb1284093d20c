"""What is done to Transactions without a step in the ledger: the Finalizer, what is given up, a task that is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from casework.durable.activities.services import Services
from casework.durable.activities.stations import Item, Station, told, unfit
from casework.durable.process_contracts import GiveUpTray, Outcome, TrayWork
from casework.errors import CaseworkError, FatalError, StoreUnavailableError
from casework.graph.problems import unknown
from casework.process.identities import step_key
from casework.process.lines import FINALIZER, MONITOR, Line
from casework.process.policies import OnError
from casework.process.transactions import Transaction, moved
from casework.store.database import Connection
from casework.store.processes import task_errors, task_steps, transactions

GIVEN_UP = "given_up"
"""The place at which a Transaction is given up, in the identities of what is recorded."""


class UnsteppedStation(Station):
    """A station whose work is one look at the Transaction, and one write."""

    async def work(self, item: Item) -> Outcome:
        """As `together`, for one."""
        return (await self.together([item]))[item]

    async def together(self, items: Sequence[Item]) -> dict[Item, Outcome]:
        """Look, and write: all in one database transaction, or each in its own where the database refuses a row."""
        others = {item: other for item in items if (other := self.not_ours(item)) is not None}
        mine = [item for item in items if item not in others]
        try:
            return {**others, **(await self._written(mine) if mine else {})}
        except StoreUnavailableError:
            raise
        except CaseworkError:
            if len(mine) == 1:
                raise
        made = others
        for item in mine:
            made |= await self._written([item])
        return made

    async def _written(self, items: Sequence[Item]) -> dict[Item, Outcome]:
        async with self.services.db.transaction() as conn:
            found = await transactions.lock_all(conn, self.asked.tenant, [item.uuid for item in items])
            made = {item: await self._one(conn, item, found.get(item.uuid)) for item in items}
            await self.flush(conn)
        return made

    async def _one(self, conn: Connection, item: Item, found: Transaction | None) -> Outcome:
        if (known := await self.known(conn, item)) is not None:
            return known
        expected = (item.status, self.asked.claim_id, None)
        if found is None or (found.status, found.claim_id, found.end_time) != expected:
            return await self.otherwise(conn, item, found)
        return await self.write(conn, found)

    async def known(self, conn: Connection, item: Item) -> Outcome | None:  # noqa: ARG002  # for who has a ledger
        """What has come of the Transaction already; its row is held."""
        return None

    async def otherwise(
        self,
        conn: Connection,  # noqa: ARG002  # for who looks further
        item: Item,
        found: Transaction | None,
    ) -> Outcome:
        """What is said of one that is not what the tray takes it for."""
        return unfit(item.uuid, found, self.asked.claim_id)

    async def write(self, conn: Connection, found: Transaction) -> Outcome:
        """Do it to a Transaction that is what the tray takes it for."""
        raise NotImplementedError

    async def flush(self, conn: Connection) -> None:
        """Write what `write` has left to be written for all at once."""

    async def fail(self, conn: Connection, found: Transaction, error: Exception) -> Outcome:
        """The failure of one. It is held whatever the policy says: there is nothing to try again or to pass over."""
        entity = self.entity(found, error, await transactions.root(conn, found), self.now())
        await task_errors.record(conn, found.tenant, entity)
        halts = self.policy.on_error is OnError.FAIL_FAST
        outcome, after = self.left(self.placed(found), entity.short, halts=halts)
        await transactions.write(conn, found, after, self.asked.process, "error", entity.failed)
        return outcome


class FinalizerStation(UnsteppedStation):
    """Ends the line: what has the status that is expected gets its next one, and all are let go."""

    def __init__(self, services: Services, work: TrayWork, line: Line | None, now: Callable[[], datetime]) -> None:
        super().__init__(services, work, line, now)
        self._ended: list[tuple[Transaction, Transaction]] = []

    async def _written(self, items: Sequence[Item]) -> dict[Item, Outcome]:
        self._ended.clear()  # of a try that came to nothing
        return await super()._written(items)

    async def write(self, conn: Connection, found: Transaction) -> Outcome:
        """Set the status, and let go."""
        finalizer = None if self.line is None else self.line.process.finalizer
        if finalizer is None:
            error = FatalError(f"Process {self.asked.process!r} has no Finalizer any more. Clone the Transaction.")
            return await self.fail(conn, found, error)
        if found.status != finalizer.expects:
            return Outcome("passed", (found.uuid,), found.status)
        after = replace(moved(self.services.app.statuses, found, finalizer.sets, self.now()), claim_id=None, task=None)
        self._ended.append((found, after))
        return Outcome("passed", (found.uuid,), after.status, held=False)

    async def otherwise(self, conn: Connection, item: Item, found: Transaction | None) -> Outcome:
        """It may be this very tray that has ended it, and its worker was lost before it could tell."""
        if found is not None and await transactions.was_made_by(conn, found, FINALIZER, self.asked.claim_id):
            return Outcome("passed", (found.uuid,), found.status, held=False)
        return unfit(item.uuid, found, self.asked.claim_id)

    async def flush(self, conn: Connection) -> None:
        """Write what has ended."""
        await transactions.write_all(conn, self._ended, self.asked.process, FINALIZER, self.now())


class GoneStation(UnsteppedStation):
    """A task, or a whole process, that the application does not have any more; or a task of a kind for which the tray
    was not begun: it waits for a run where it was to work at once, or the other way.
    """

    async def write(self, conn: Connection, found: Transaction) -> Outcome:
        """Fail it, with what there is."""
        asked, lines = self.asked, self.services.lines
        if self.line is None:
            what = unknown("process", asked.process, lines)
        elif self.spec is None:
            what = f"process {asked.process!r} has no task {asked.station!r} any more"
        else:
            what = f"task {asked.station!r} of process {asked.process!r} is of kind {self.spec.kind} now"
        text = f"{what[0].upper()}{what[1:]}. The tray was begun by another release; clone the Transaction."
        return await self.fail(conn, found, FatalError(text))


class GivenUpStation(UnsteppedStation):
    """Transactions that fail by no fault of their own, at the task where they are."""

    def __init__(self, services: Services, asked: GiveUpTray, line: Line | None, now: Callable[[], datetime]) -> None:
        work = TrayWork(asked.tenant, asked.process, asked.claim_id, GIVEN_UP, asked.number, 1, asked.standing)
        super().__init__(services, work, line, now)
        self._reasons = asked.reasons
        self._path, self._attempt = asked.path, asked.attempt

    def placed(self, transaction: Transaction) -> Transaction:
        """It stays where it is."""
        return replace(transaction, process=self.asked.process, task=transaction.task or MONITOR)

    async def known(self, conn: Connection, item: Item) -> Outcome | None:
        """The outcome of the work in the ledger: its worker was lost between the commit and the report."""
        if not self._path:
            return None
        step = step_key(self.asked.claim_id, self._path, item.uuid)
        result = await task_steps.result(conn, self.asked.tenant, step, self._attempt)
        return None if result is None else told(item.uuid, result)

    async def write(self, conn: Connection, found: Transaction) -> Outcome:
        """Fail it, for its reason."""
        return await self.fail(conn, found, FatalError(self._reasons[found.uuid]))
