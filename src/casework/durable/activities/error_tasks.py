"""The station of an error task: a transactional one, whose remedy ends the Transaction in the same transaction."""

from __future__ import annotations

from datetime import datetime

from casework.durable.activities.remedying import ended_by_remedy, hand_over
from casework.durable.activities.transactional_tasks import TransactionalStation
from casework.durable.process_contracts import Outcome
from casework.process.working import Worked
from casework.store.database import Connection
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep


class ErrorStation(TransactionalStation):
    """A Task that deals with what failed."""

    async def ended(
        self, conn: Connection, step: TaskStep, begun: Begun, made: Worked, at: datetime
    ) -> tuple[Outcome, TaskEnd]:
        """By a remedy the Transaction leaves the line, and a clone has taken over; else it goes on."""
        if made.remedy is None:
            return await super().ended(conn, step, begun, made, at)
        outcome, end, ended = ended_by_remedy(self, step, begun, made, at)
        if ended.clone is not None:
            await hand_over(conn, self, end, ended.clone)
        return outcome, end
