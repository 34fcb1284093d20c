"""The station of every kind of Task that works in the database: one database transaction for each Transaction.

The Task's statements, the Transaction, its children, arrivals and the row in the ledger are committed together, or
nothing is. The Task is lent the connection and can neither end the transaction nor keep it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

import psycopg

from casework.durable.activities.faults import fault_point
from casework.durable.activities.services import Services
from casework.durable.activities.stations import Item, Station, leaves
from casework.durable.process_contracts import Outcome, TrayWork
from casework.errors import CaseworkError, ConflictError, RetryableError, StoreUnavailableError
from casework.process.lines import Line
from casework.process.tasks import JoinTask, Kind
from casework.process.working import Reads, Worked, worked
from casework.store.database import Connection
from casework.store.lent import lent
from casework.store.processes import task_errors, task_steps, transactions, waiting_parents
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep

TRIES = 3
"""How often a Transaction is tried that fell to a deadlock, or whose connection broke while others lived."""
_BY_CHANCE = frozenset({"40001", "40P01"})
"""Deadlocks, and what could not be put in an order with others."""


class _TaskError(Exception):
    """What the Task raised, on its way out of the database transaction. `lost`: the connection is gone."""

    def __init__(self, error: BaseException, *, lost: bool = False) -> None:
        super().__init__()
        self.error = error
        self.lost = lost


class _WaitsError(Exception):
    """The Transaction waits for its children; nothing is written, and the attempt does not count."""


class TransactionalStation(Station):
    """A Task of a kind that has `ctx.connection`. `room` bounds how many connections all of them hold."""

    def __init__(
        self, services: Services, work: TrayWork, line: Line, now: Callable[[], datetime], room: asyncio.Semaphore
    ) -> None:
        super().__init__(services, work, line, now)
        self._room = room

    async def work(self, item: Item) -> Outcome:
        """Wholly, or not at all."""
        if (other := self.not_ours(item)) is not None:
            return other
        step, started, left = self.step(item), self.now(), TRIES
        while True:
            left -= 1
            try:
                async with self._room:
                    return await self._whole(item, step)
            except _WaitsError:
                await self._note(step, started)
                return Outcome("waits", (item.uuid,), item.status)
            except _TaskError as raised:
                if left and await self._by_chance(raised):
                    continue
                return await self._failed(item, step, raised.error, started)
            except StoreUnavailableError:
                raise
            except CaseworkError as error:  # what the Task made of it cannot be a row
                return await self._failed(item, step, error, started)

    async def _whole(self, item: Item, step: TaskStep) -> Outcome:
        at, place = self.now(), f"{step.path}/{item.uuid}"
        async with self.services.db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
            if (known := self.met(item, begun)) is not None:
                return known
            await self._look(conn, step, begun)
            outcome, end = await self._made(conn, step, begun, at)
            fault_point("sent", place)
            await task_steps.end(conn, end)
            fault_point("acted", place)
        fault_point("committed", place)
        return outcome

    async def _look(self, conn: Connection, step: TaskStep, begun: Begun) -> None:
        """Whether a join has nothing to wait for: all children are there, or no other can come in another tray, or not
        as long as it may take.

        Raises:
            _WaitsError: it has.
        """
        assert self.spec is not None
        assert self.line is not None
        assert begun.transaction is not None
        if self.spec.kind is Kind.JOIN:
            line, family = self.line, await transactions.family(conn, begun.transaction)
            away = any(line.may_bring(child, self.asked.claim_id) for child in family.away)
            if away and not await self._waited(conn, step):
                raise _WaitsError

    async def _note(self, step: TaskStep, since: datetime) -> None:
        """That it waits. One that was ended meanwhile is found so at the next look."""
        with suppress(ConflictError):
            async with self.services.db.transaction() as conn:
                await waiting_parents.note(conn, step, since)

    async def _waited(self, conn: Connection, step: TaskStep) -> bool:
        """Whether it has waited as long as it may."""
        assert self.spec is not None
        assert issubclass(self.spec.cls, JoinTask)
        limit = self.spec.cls.longest_wait
        since = None if limit is None else await waiting_parents.since(conn, step)
        return limit is not None and since is not None and self.now() - since >= limit

    async def _made(self, conn: Connection, step: TaskStep, begun: Begun, at: datetime) -> tuple[Outcome, TaskEnd]:
        """Let the Task work; whatever it raises is its own."""
        try:
            made = await self._act(conn, step, begun, at)
            return await self.ended(conn, step, begun, made, at)
        except _TaskError as raised:
            raise _TaskError(raised.error, lost=conn.closed) from raised.error
        except BaseException as error:
            if leaves(error):
                raise
            raise _TaskError(error, lost=conn.closed) from error

    async def ended(
        self,
        conn: Connection,  # noqa: ARG002  # for what else is to be written
        step: TaskStep,
        begun: Begun,
        made: Worked,
        at: datetime,
    ) -> tuple[Outcome, TaskEnd]:
        """How the step ends, once whatever else is to be written is written.

        Raises:
            ExpressionError, ProcessDeclarationError: as `onward`.
        """
        return self.done(step, begun, made, at)

    async def _act(self, conn: Connection, step: TaskStep, begun: Begun, at: datetime) -> Worked:
        assert self.spec is not None
        assert begun.transaction is not None
        reads = Reads(partial(transactions.family, conn), lambda of: task_errors.of(conn, of.tenant, of.uuid))
        transaction = self.placed(begun.transaction)
        async with self.deadline(), lent(conn, sure=False) as connection:  # `end` is sure
            ctx = self.context(step, begun, at, connection)
            try:
                async with self.services.injector.made(self.spec.cls, connection) as task:
                    return await worked(task, transaction, ctx, self.services.app.statuses, reads)
            except psycopg.Error as error:  # the lender would take it for its own
                raise _TaskError(error) from error

    async def _by_chance(self, raised: _TaskError) -> bool:
        """Whether it may go well at once.

        Raises:
            StoreUnavailableError: the connection broke because the database is away.
        """
        if raised.lost:
            await self.services.db.ping()
        return raised.lost or _state_of(raised.error) in _BY_CHANCE

    async def _failed(self, item: Item, step: TaskStep, error: BaseException, started: datetime) -> Outcome:
        """Write the failure, in a database transaction of its own."""
        async with self.services.db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
            if (known := self.met(item, begun)) is not None:
                return known
            assert begun.transaction is not None
            root = await transactions.root(conn, begun.transaction)
            outcome, end = self.failure(step, begun, error, self.entity(begun.transaction, error, root, started))
            await task_steps.end(conn, end)
        return outcome


def _state_of(error: BaseException) -> Any:
    """The SQLSTATE, of the error or of what the lent connection made of it."""
    cause = error.__cause__ if isinstance(error, RetryableError) else error
    return cause.sqlstate if isinstance(cause, psycopg.Error) else None
