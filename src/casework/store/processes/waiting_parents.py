"""Parents that wait at a join for children in other trays: since when, and for which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.task_steps import TaskStep

_SQL = queries.load("waiting_parents")


@dataclass(frozen=True, slots=True)
class Wait:
    """A Transaction waits at `task`, in the tray `claim_id`, `since` it first stood there in vain."""

    process: str
    task: str
    claim_id: UUID
    since: datetime


@dataclass(frozen=True, slots=True)
class WaitCount:
    """How many Transactions of a process wait at its joins, and since when the first of them does."""

    transactions: int
    since: datetime | None


async def note(conn: Connection, step: TaskStep, since: datetime) -> None:
    """It waits there; the first note counts.

    Raises:
        ConflictError: (through `Database.transaction`) the Transaction has ended.
    """
    params = queries.Writing(
        tenant=step.tenant,
        uuid=step.transaction,
        step_id=step.step_id,
        claim_id=step.claim_id,
        process=step.process,
        task=step.task,
        since=since,
    )
    await queries.run(conn, _SQL["note"], params)


async def since(conn: Connection, step: TaskStep) -> datetime | None:
    """Since when it waits there; None where it was not noted."""
    params = {"tenant": step.tenant, "uuid": step.transaction, "step_id": step.step_id}
    found: datetime | None = await queries.value(conn, _SQL["since"], params)
    return found


async def of(conn: Connection, tenant: str, uuid: UUID) -> Wait | None:
    """Where a Transaction waits now, if it does."""
    return await queries.one(conn, _SQL["of"], {"tenant": tenant, "uuid": uuid}, Wait)


async def of_process(conn: Connection, tenant: str, process: str) -> WaitCount:
    """How many wait at the joins of a process now."""
    found = await queries.one(conn, _SQL["of_process"], {"tenant": tenant, "process": process}, WaitCount)
    assert found is not None  # it counts
    return found
