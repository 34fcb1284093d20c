"""WAIT: until a time has passed, or a signal has come, without holding a worker."""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio import workflow

from casework.durable.workflows.casefile import CaseFile, Visit
from casework.graph import commands, fanning
from casework.tasktree import current_node
from casework.values import instant


class WaitVisit(Visit):
    """WAIT as a node."""

    async def visit(self) -> commands.Outcome:
        """How it ended; its value is an output where the node has a key for it."""
        node = self.node
        outcome = await wait(self.file, self.command)
        if node.output_key is not None:
            value = fanning.value_of(node, outcome)
            self.file.journal.output(current_node().path, node.output_key, self.command.visit, value)
        return outcome


async def wait(file: CaseFile, command: commands.Wait) -> commands.Signalled | commands.TimedOut:
    """Whichever comes first; a signal that is there already comes before any time. It is an event, begun and over."""
    path, journal = current_node().path, file.journal
    until = None if command.duration_s is None else workflow.now() + timedelta(seconds=command.duration_s)
    told = {"signal": command.signal, "until": None if until is None else instant(until)}
    journal.event(path, "agent.wait_started", told)
    outcome = await _first(file, command.signal, until)
    journal.event(path, "agent.wait_over", {"timed_out": isinstance(outcome, commands.TimedOut)})
    return outcome


async def _first(file: CaseFile, name: str | None, until: datetime | None) -> commands.Signalled | commands.TimedOut:
    signals, outbox = file.inbox.signals, file.journal.outbox
    while True:
        if name is not None and signals.has(name):
            return commands.Signalled(signals.take(name))
        left = None if until is None else (until - workflow.now()).total_seconds()
        if left is not None and left <= 0:
            return commands.TimedOut()
        if len(outbox) and not outbox.travelling:
            await file.operations.flush()  # whoever looks at the run sees that it waits as intended
            continue
        try:
            await workflow.wait_condition(
                lambda: signals.has(name) or (len(outbox) > 0 and not outbox.travelling),
                timeout=left,
                timeout_summary="waits as intended",
            )
        except TimeoutError:
            continue
