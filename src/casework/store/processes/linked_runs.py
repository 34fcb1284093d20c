"""The runs that agent and manual tasks have started for Transactions, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.task_steps import TaskStep

_SQL = queries.load("linked_runs")


@dataclass(frozen=True, slots=True)
class LinkedRun:
    """A run of a Transaction; `status` is the run's own, None where its row was deleted."""

    transaction_uuid: UUID
    run_id: UUID
    step_id: UUID
    task: str
    status: str | None
    at: datetime

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.status in ("PENDING", "RUNNING", "AWAITING_REVIEW")


async def link(conn: Connection, step: TaskStep, run_id: UUID, at: datetime) -> None:
    """Say that the step waits for the run; doing it again changes nothing."""
    params = queries.Writing(
        tenant=step.tenant, uuid=step.transaction, run_id=run_id, step_id=step.step_id, task=step.task, at=at
    )
    await queries.run(conn, _SQL["link"], params)


async def of(conn: Connection, tenant: str, transaction: UUID) -> list[LinkedRun]:
    """The runs of a Transaction, in the order in which they were started."""
    return await queries.many(conn, _SQL["of"], {"tenant": tenant, "uuid": transaction}, LinkedRun)


async def transaction_of(conn: Connection, tenant: str, run_id: UUID) -> UUID | None:
    """The Transaction that a run belongs to; None for a run that no task has started."""
    found = await queries.value(conn, _SQL["transaction_of"], {"tenant": tenant, "run_id": run_id})
    return None if found is None else UUID(str(found))
