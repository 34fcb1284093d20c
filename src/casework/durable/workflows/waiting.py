"""Agent and manual tasks in a tray: work that waits for a run, or for a person."""

from __future__ import annotations

from casework.durable.process_contracts import Outcome
from casework.durable.workflows.tray_calls import TrayCalls
from casework.process.walk import GiveUp, Work


async def visit(calls: TrayCalls, work: Work) -> list[Outcome]:
    """The visit of an agent or manual task; the path of the running node is its own."""
    reason = f"task {work.station!r} waits for a run, and trays do not start runs yet"
    return await calls.give_up(GiveUp(dict.fromkeys(work.transactions, reason)))
