"""What of a free tree becomes events: its Jobs, as the visits of a graph do. Handlers are told by their steps.

A tree may have any number of Jobs, and events are rows that people read: so many are told, then only counted, and the
count is told at the end. A talk of a thousand rounds is told whole. Steps have their ledger rows in any case.
"""

from __future__ import annotations

from casework.durable.workflows.failures import reason_of
from casework.durable.workflows.journal import Journal
from casework.tasktree import Job, Stage, TaskNode

EVENTS_LIMIT = 2500
CALLBACK_ERRORS_LIMIT = 100


class TreeEvents:
    """The listener of one tree."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told = 0
        self._untold = 0
        self._callback_errors = 0

    def on_stage(self, node: TaskNode, stage: Stage) -> None:
        """Starts and ends of Jobs become events, up to the limit."""
        if not isinstance(node, Job):
            return
        if self._told < EVENTS_LIMIT:
            before = self._journal.outbox.last
            self._journal.on_stage(node, stage)
            self._told += self._journal.outbox.last - before
        elif stage in (Stage.AT_JOB_END, Stage.AT_TERMINATE):
            self._untold += 1

    def on_callback_error(self, node: TaskNode, stage: Stage, error: BaseException) -> None:
        """An error of a callback, or of a body that was being ended, changes nothing but is told in the run's log."""
        self._callback_errors += 1
        if self._callback_errors <= CALLBACK_ERRORS_LIMIT:
            self._journal.log(node.path, "ERROR", f"{stage.name.lower()}: {reason_of(error)}")

    def close(self) -> None:
        """The tree is over: say how many Jobs were not told."""
        if self._untold:
            self._journal.event("", "agent.nodes_untold", {"jobs": self._untold, "told": self._told})
