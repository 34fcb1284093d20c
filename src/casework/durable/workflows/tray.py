"""A tray: one Temporal workflow that walks Transactions of one claim along their line.

It moves like this. The pure walk says what is due; a Job of the task tree has it done, by an activity that works on
each Transaction for itself; the outcomes go back into the walk; until nothing is due. The shape of the line came with
the tray, so a release with another line does not change its way: a task that the workers do not have any more fails
its Transactions, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from casework.durable.process_contracts import TRAY_WORKFLOW, Outcome, TrayEnd, TrayStart
    from casework.durable.workflows import waiting
    from casework.durable.workflows.failures import only_cancelled, root_failure
    from casework.durable.workflows.rolling import CARRIED_BYTES, FEWEST_EVENTS
    from casework.durable.workflows.shell import PASSING, is_unwinding
    from casework.durable.workflows.tray_book import TrayBook
    from casework.durable.workflows.tray_calls import TrayCalls
    from casework.process.tasks import Kind
    from casework.process.walk import Due, GiveUp, Work
    from casework.tasktree import Commander, Job, submit
    from casework.values import dumps

GIVE_UP = "GIVE_UP"
SKIPPED = "SKIPPED"
RELEASE = "RELEASE"
"""Names of nodes that are no stations: those have small letters."""


@workflow.defn(name=TRAY_WORKFLOW)
class Tray:
    """The way of one tray; the Temporal workflow id is `tray-` and its claim."""

    @workflow.init
    def __init__(self, start: TrayStart) -> None:
        self._start = start
        self._book = TrayBook(start)
        self._calls = TrayCalls(start, self._book)
        self._leaving = False
        self._refused_at = 0

    @workflow.run
    async def run(self, start: TrayStart) -> TrayEnd:
        """Walk to the end. What the tray itself cannot do fails it, and the sweep finds its Transactions."""
        try:
            return await self._walk(start)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if isinstance(error, PASSING) or is_unwinding():
                raise
            if only_cancelled(error):
                raise asyncio.CancelledError from error
            raise ApplicationError(root_failure(error), type="TrayFailedError", non_retryable=True) from None

    async def _walk(self, start: TrayStart) -> TrayEnd:
        book, calls = self._book, self._calls
        async with self._tree() as tree:
            if start.carried is None:
                book.enter(start)
                await submit(_Call(SKIPPED, calls.tell_skipped))
            while (pending := book.due) is not None:
                book.take(await submit(_Visit(calls, book, pending)))
                if self._rolls_over():
                    self._roll_over(tree)
            if book.holds:
                await submit(_Call(RELEASE, calls.release))
        travellers = book.state.travellers
        return TrayEnd(len(travellers), sum(each.left is not None for each in travellers))

    def _tree(self) -> Commander:
        carried = self._start.carried
        return Commander(
            is_unwinding=lambda: self._leaving or is_unwinding(),
            engine_errors=(asyncio.CancelledError,),
            counters=None if carried is None else {path: dict(each) for path, each in carried.counters.items()},
        )

    def _rolls_over(self) -> bool:
        """Whether the history is long enough. Past what is too much to carry, it has to grow by half before a try."""
        info, start = workflow.info(), self._start
        events = info.get_current_history_length()
        if events < max(FEWEST_EVENTS, self._refused_at * 3 // 2):
            return False
        full = events >= start.roll_over_events or info.get_current_history_size() >= start.roll_over_bytes
        return full or info.is_continue_as_new_suggested()

    def _roll_over(self, tree: Commander) -> None:
        """Go on as the next part; nothing is in flight. Returns only where there is too much to carry."""
        start, before = self._start, self._start.carried
        part = 2 if before is None else before.part + 1
        carried = self._book.carried(part, tree.export_counters(), self._calls.given_up)
        limits = dict(self._calls.limits)
        successor = replace(start, entries=(), standing=(), carried=carried, apart_ms=limits)
        if len(dumps(successor).encode()) <= CARRIED_BYTES:
            self._leaving = True
            workflow.continue_as_new(successor)
        self._refused_at = workflow.info().get_current_history_length()


class _Visit(Job):
    """A station's work, as the walk says that it is due."""

    def __init__(self, calls: TrayCalls, book: TrayBook, pending: Due) -> None:
        super().__init__(pending.station if isinstance(pending, Work) else GIVE_UP)
        self._calls = calls
        self._kinds = book.shape.kinds
        self._pending = pending

    async def task(self) -> list[Outcome]:
        """The outcome for each of its Transactions."""
        pending = self._pending
        if isinstance(pending, GiveUp):
            return await self._calls.give_up(pending)
        if self._kinds.get(pending.station) in (Kind.AGENT, Kind.MANUAL):
            return await waiting.visit(self._calls, pending)
        return await self._calls.work(pending)


class _Call(Job):
    """What a tray does beside the stations."""

    def __init__(self, name: str, call: Callable[[], Awaitable[None]]) -> None:
        super().__init__(name)
        self._call = call

    async def task(self) -> None:
        """Do it."""
        await self._call()
