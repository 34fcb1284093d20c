"""Steps of Tasks that only compute: looked at, worked on, and completed, many in one trip and without a claim.

Nobody can find an act of such a Task between its begin and its end, so its row in the ledger is born COMPLETED. What
holds instead of the fence of an attempt: it is written only where no row is there, and where the Transaction is the
very version that the Task was given (migration `work_together`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from casework.process import Transaction
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.plain_rows import changed_row, transaction_of
from casework.store.processes.task_steps import TaskEnd, TaskStep
from casework.values import Plain, instant, text_of

_SQL = queries.load("computed_steps")


@dataclass(frozen=True, slots=True)
class Seen:
    """A Transaction, and the version of its row."""

    transaction: Transaction
    version: str


@dataclass(frozen=True, slots=True)
class Computed:
    """How a step ended that began at the instant `started`, and the version that its Task was given."""

    end: TaskEnd
    version: str
    started: datetime


async def look(conn: Connection, steps: Sequence[TaskStep]) -> Mapping[UUID, Seen]:
    """Of steps of one tray, by their ids, those that may be worked on: never begun, and the Transaction as expected."""
    if not steps:
        return {}
    params = {
        "tenant": steps[0].tenant,
        "claim_id": steps[0].claim_id,
        "steps": [step.step_id for step in steps],
        "uuids": [step.transaction for step in steps],
        "statuses": [step.status for step in steps],
    }
    rows = await queries.dicts(conn, _SQL["computable"], params)
    return {row["step_id"]: Seen(transaction_of(row), row["seen"]) for row in rows}


async def complete(conn: Connection, done: Sequence[Computed]) -> frozenset[UUID]:
    """Complete steps of one visit of a tray; the ids of those that were written. All others are as they were.

    Raises:
        ConflictError: (through `Database`) the database refused a row: nothing of all was written.
    """
    if not done:
        return frozenset()
    step = done[0].end.step
    params = queries.Writing(
        tenant=step.tenant,
        claim_id=step.claim_id,
        process=step.process,
        task=step.task,
        path=step.path,
        kind=step.kind,
        version=step.version,
        work_attempt=step.work_attempt,
        at=done[-1].end.at,
    ) | {"ends": Jsonb([_ended(each) for each in done], dumps=text_of)}
    return frozenset(row["step_id"] for row in await queries.dicts(conn, _SQL["complete"], params))


def _ended(done: Computed) -> dict[str, Plain]:
    end = done.end
    return {
        **changed_row(end.before, end.after, end.step.process),
        "step": str(end.step.step_id),
        "uuid": str(end.before.uuid),
        "seen": done.version,
        "before": end.before.status,
        "result": end.result,
        "started": instant(done.started),
    }
