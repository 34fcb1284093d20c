"""How much a free tree may have under way, and how long its history may get. The engine's limits end or block a run.

The engine takes 2,000 open activities of a run, 4 MB in one answer of a worker, and a history of 51,200 events or
50 MB. Calls beyond the first two wait for their turn; before the last two a tree is stopped. The figures are part of
every history: a change of one changes what old histories say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import workflow

CALLS_AT_ONCE = 200
BYTES_AT_ONCE = 1_500_000
"""Of words and arguments; beside them travel at most 0.5 MB of entries."""
HISTORY_BYTES = 40 * 1024 * 1024


class Room:
    """The room of one run."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._calls = 0
        self._bytes = 0

    @asynccontextmanager
    async def for_call(self, size: int) -> AsyncIterator[None]:
        """Room for one call with `size` characters; waits until there is."""
        while not self._fits(size):
            await workflow.wait_condition(lambda: self._fits(size))
        self._calls += 1
        self._bytes += size
        try:
            yield
        finally:
            self._calls -= 1
            self._bytes -= size

    @property
    def idle(self) -> bool:
        """Whether no call is under way."""
        return not self._calls

    def _fits(self, size: int) -> bool:
        return self.idle or (self._calls < CALLS_AT_ONCE and self._bytes + size <= BYTES_AT_ONCE)

    def full(self) -> str | None:
        """Why the history takes no further call, or None."""
        info = workflow.info()
        events, size = info.get_current_history_length(), info.get_current_history_size()
        if events < self._max_events and size < HISTORY_BYTES:
            return None
        return (
            f"the history of this run has {events:,} events and {size:,} bytes, and a free tree is stopped at "
            f"{self._max_events:,} events or {HISTORY_BYTES:,} bytes, before the engine would end it: it cannot roll "
            "over. Split the work into several runs"
        )
