"""Going on as a new history: when a run is due for it, and what its next part takes over.

It moves like this. Between two visits the run itself asks whether it is due. In the middle of a visit only its body
knows that nothing is in flight: it says so with `rest`, which wakes the run and waits; the run then takes down where
everything stands while the visit is still open, and the next part re-opens it under its own path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from temporalio import workflow

from casework.durable.contracts import CancelRequest, Carried, RunStart
from casework.durable.workflows.inbox import Inbox
from casework.durable.workflows.journal import Journal
from casework.durable.workflows.operations import Operations
from casework.graph.state import EngineState
from casework.tasktree import Commander, current_node
from casework.values import dumps, instant

ROLLS_OVER = "rolls-over"
"""The change since which a graph run goes on as a new history."""
FEWEST_EVENTS = 20
"""Of a part: one that began with much to carry has done something before the next begins."""
CARRIED_BYTES = 1_500_000
"""Most that a part's input may be, as JSON; the engine takes 2 MB."""
UNSENT_BYTES = 64 * 1024
"""Most of the outbox that goes along unsent; more is sent before."""


class Rolling:
    """The parts of one run."""

    def __init__(self, start: RunStart, journal: Journal, inbox: Inbox, operations: Operations) -> None:
        self._start = start
        self._journal = journal
        self._inbox = inbox
        self._operations = operations
        self._resting: tuple[str, int] | None = None
        self._refused_at = 0
        self.wake: Callable[[], object] = lambda: None
        """Cancels the wait of the run for its visit."""
        self.leaving = False
        """From now on the tree of this part is only dropped from memory."""
        if start.carried is not None:
            self._take_over(start.carried)

    @property
    def part(self) -> int:
        """Which part of the run this is, from 1."""
        return 1 if self._start.carried is None else self._start.carried.part

    @property
    def resting(self) -> bool:
        """Whether a visit waits for the next part."""
        return self._resting is not None

    def due(self) -> bool:
        """Whether the history is long enough. Past what is too much to carry, it has to grow by half before the next
        try."""
        info = workflow.info()
        events = info.get_current_history_length()
        if events < max(FEWEST_EVENTS, self._refused_at * 3 // 2):
            return False
        full = events >= self._start.roll_over_events or info.get_current_history_size() >= self._start.roll_over_bytes
        return (full or info.is_continue_as_new_suggested()) and workflow.patched(ROLLS_OVER)

    async def rest(self, done: int = 0) -> None:
        """Said by a visit with nothing in flight, `done` exchanges behind it. Where the run is due, nothing follows."""
        if not self.due():
            return
        self._resting = current_node().path, done
        self.wake()
        await workflow.wait_condition(lambda: self._resting is None)

    async def over(self, state: EngineState, tree: Commander, cancelled: Callable[[], CancelRequest | None]) -> None:
        """Go on as the next part. Returns only where there is too much to carry; a resting visit then goes on.

        Every command that has arrived is answered before, and its sender told; what comes after goes to the next part.
        """
        await self._settle()
        size = len(dumps(self._successor(state, tree, cancelled())).encode())
        if size <= CARRIED_BYTES:
            self._tell()
            self.leaving = True
            workflow.continue_as_new(self._successor(state, tree, cancelled()))
        if not self._refused_at:
            why = f"the run cannot go on as a new history: it would carry {size:,} bytes, and {CARRIED_BYTES:,} can be"
            self._journal.log("", "WARNING", why)
        self._refused_at = workflow.info().get_current_history_length()
        self._resting = None

    def _tell(self) -> None:
        info = workflow.info()
        data = {"events": info.get_current_history_length(), "bytes": info.get_current_history_size()}
        self._journal.event("", f"agent.run_rolled_over:{self.part}", data)

    async def _settle(self) -> None:
        """Wait until nobody waits for an answer; between the last look and the next part nothing else may run."""
        outbox = self._journal.outbox
        while not workflow.all_handlers_finished() or outbox.size > UNSENT_BYTES:
            await self._operations.flush()
            await workflow.wait_condition(workflow.all_handlers_finished)

    def _successor(self, state: EngineState, tree: Commander, cancel: CancelRequest | None) -> RunStart:
        path, done = self._resting or (None, 0)
        before = self._start.carried
        carried = Carried(
            part=self.part + 1,
            since=instant(workflow.info().start_time) if before is None else before.since,
            state=state.to_plain(),
            counters=tree.export_counters(),
            journal=self._journal.carried(state.context),
            inbox=self._inbox.carried(),
            outbox=self._journal.outbox.unsent(),
            flushes=self._operations.flushes,
            at_rest=path,
            done=done,
            cancel=cancel,
        )
        return replace(self._start, carried=carried)

    def _take_over(self, carried: Carried) -> None:
        context: Mapping[str, Any] = carried.state["context"]
        self._journal.take_over(carried.journal, context)
        self._journal.resumed = carried.at_rest or ""
        self._journal.outbox.take_over(carried.outbox)
        self._inbox.take_over(carried.inbox)
        self._operations.flushes = carried.flushes


def asked_to_end(cancel: CancelRequest | None, inbox: Inbox) -> bool:
    """Whether the run stops here. A decision that was accepted before is acted on first."""
    return workflow.cancellation_reason() is not None or (cancel is not None and inbox.accepted is None)


def ordinal_of(path: str) -> int:
    """The ordinal in the last step of a path."""
    return int(path.rpartition(".")[2])


def uncancel() -> None:
    """A cancellation that was taken note of must not strike again at the next wait."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
