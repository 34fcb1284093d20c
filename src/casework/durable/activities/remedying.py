"""What a remedy makes of a failed Transaction at a station of an Error process, and how it is written."""

from __future__ import annotations

from datetime import datetime

from casework.durable.activities.stations import Station, kept
from casework.durable.process_contracts import Outcome
from casework.process.remedies import Remedied, remedied
from casework.process.transactions import Transaction
from casework.process.working import Worked
from casework.store.database import Connection
from casework.store.processes import remedies
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep


def ended_by_remedy(
    station: Station, step: TaskStep, begun: Begun, made: Worked, at: datetime
) -> tuple[Outcome, TaskEnd, Remedied]:
    """How the step ends where the Task gave a remedy: the Transaction leaves the line, whatever became of it.

    Raises:
        StateError: the Transaction has no error, or the policy has not this answer.
        InputError: the status to clone into, or the task to resume at, is none that there is.
    """
    assert made.remedy is not None
    assert begun.transaction is not None
    services = station.services
    ended = remedied(
        made.transaction,
        made.remedy,
        statuses=services.app.statuses,
        policy=station.policy,
        lines=services.lines.values(),
        at=at,
    )
    reason = f"it was ended by {made.remedy.answer}"
    outcome = Outcome("left", (step.transaction,), ended.transaction.status, held=False, reason=reason)
    end = TaskEnd(
        step=step,
        attempt=begun.attempt or 0,
        before=begun.transaction,
        after=ended.transaction,
        by=step.task,
        at=at,
        result=kept(outcome),
        by_hand=ended.by_hand,
    )
    return outcome, end, ended


async def hand_over(conn: Connection, station: Station, end: TaskEnd, clone: Transaction) -> None:
    """What belonged to the Transaction is the clone's, in the database transaction in which its step ends.

    Raises:
        ProcessDeclarationError: a table of the project's entities is not guarded.
    """
    await remedies.hand_over(conn, end.before, clone, station.services.app.entities, end.step.process, end.by, end.at)
