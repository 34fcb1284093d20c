"""The ledger of Tasks: begin, act, end. What makes a repeat harmless, for one Transaction or many in one trip.

`begin` locks the Transaction, checks that its status and claim are those that the tray takes it for, and takes the next
attempt of the step, or finds it ended and says so. The attempt is a fence: `end` writes only while it is the step's own
and the Transaction is as it was. Both are functions of the database (migration `transaction_work`): a transactional
Task calls `begin` and `end` in one database transaction, another one each by itself, committed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from casework.process import ErrorEntity, Transaction
from casework.process.identities import step_key
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.plain_rows import as_json, changed_row, error_row, held, new_row, transaction_of
from casework.values import Plain

_SQL = queries.load("task_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep:
    """What is about to be done: `task` on `transaction`, at `path` (`Work.path`) of the tray `claim_id`.

    `status` is what the tray takes the Transaction for. `work_attempt` is the attempt of the walk (`Work.attempt`): a
    step that failed is begun again for a later one only.
    """

    tenant: str
    claim_id: UUID
    transaction: UUID
    status: str
    process: str
    task: str
    path: str
    kind: str
    version: str = "1"
    work_attempt: int = 1
    step_id: UUID = field(init=False)
    """Of its row: the same for every attempt."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_id", step_key(self.claim_id, self.path, self.transaction))


Met = Literal["begun", "done", "failed", "moved", "ended", "absent"]


@dataclass(frozen=True, slots=True)
class Begun:
    """What `begin` met, the step's row, and the Transaction as it is now.

    begun: act, and end it as `attempt`. done: it is COMPLETED; `result` is what came of it. failed: it FAILED at this
    very attempt of the walk; `result` and `error` are what was written then. moved: status or claim are not those
    expected. ended: the Transaction is terminal. absent: there is none. Only what has begun may act.
    """

    met: Met
    attempt: int | None
    state: str | None
    result: Plain
    error: str | None
    transaction: Transaction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """How an attempt ended, and all that is written with it.

    `before` is the Transaction as `begin` gave it, `after` as it is now; `by` made the change, at the instant `at`.
    COMPLETED with a `result`, or FAILED with an `error` as well. `children` are new Transactions of a split; `failure`
    is recorded; `arrived`: the Transaction has come to the join `step.task`.
    """

    step: TaskStep
    attempt: int
    before: Transaction
    after: Transaction
    by: str
    at: datetime
    state: Literal["COMPLETED", "FAILED"] = "COMPLETED"
    result: Plain = None
    error: str | None = None
    children: Sequence[Transaction] = ()
    failure: ErrorEntity | None = None
    arrived: bool = False
    by_hand: bool = False


Ended = Literal["written", "overtaken", "moved"]


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of the ledger. `attempt` counts its begins."""

    step_id: UUID
    transaction_uuid: UUID
    claim_id: UUID
    process: str
    task: str
    path: str
    kind: str
    task_version: str
    state: str
    attempt: int
    work_attempt: int
    result: Plain
    error: str | None
    cleaned: int
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None


async def begin(conn: Connection, step: TaskStep) -> Begun:
    """Take the next attempt of a step; holds the Transaction to the end of the database transaction."""
    return (await begin_all(conn, [step]))[0]


async def begin_all(conn: Connection, steps: Sequence[TaskStep]) -> list[Begun]:
    """The same for several steps of one tray, each for itself, in their order."""
    if not steps:
        return []
    asked = [_asked(step) for step in steps]
    params = queries.Writing(tenant=steps[0].tenant, claim_id=steps[0].claim_id) | {"asked": as_json(asked)}
    rows = {row["step_id"]: row for row in await queries.dicts(conn, _SQL["begin"], params)}
    return [_begun(rows[step.step_id]) for step in steps]


def _asked(step: TaskStep) -> dict[str, Plain]:
    return {
        "step": str(step.step_id),
        "transaction": str(step.transaction),
        "status": step.status,
        "process": step.process,
        "task": step.task,
        "path": step.path,
        "kind": step.kind,
        "version": step.version,
        "work_attempt": step.work_attempt,
    }


def _begun(row: dict[str, Any]) -> Begun:
    found = None if row["met"] == "absent" else transaction_of(row)
    return Begun(row["met"], row["attempt"], row["state"], row["result"], row["error"], found)


async def end(conn: Connection, ended: TaskEnd) -> None:
    """End an attempt in the database transaction in which it was begun.

    Raises:
        StoreUnavailableError: (through `Database.transaction`) it is not the current attempt any more, or status or
            claim of the Transaction are not those of `before`: nothing was written.
        FatalError: (the same) the database transaction was ended meanwhile, by whoever it was lent to.
        ConflictError: (the same) the database refused a row.
    """
    await _end(conn, [ended], whole=True)


async def end_all(conn: Connection, ends: Sequence[TaskEnd]) -> list[Ended]:
    """End attempts of one tenant that were begun before, each for itself, in their order; what came of each.

    overtaken: the step was begun anew, or has ended. moved: status or claim of the Transaction are not those of
    `before`. Nothing of these is written.

    Raises:
        ConflictError: (through `Database.transaction`) the database refused a row: nothing of all was written.
    """
    return await _end(conn, ends, whole=False) if ends else []


async def _end(conn: Connection, ends: Sequence[TaskEnd], *, whole: bool) -> list[Ended]:
    params = queries.Writing(tenant=ends[0].step.tenant, whole=whole) | {"ends": as_json([_ended(e) for e in ends])}
    met = {row["step_id"]: row["met"] for row in await queries.dicts(conn, _SQL["end"], params)}
    return [met[ended.step.step_id] for ended in ends]


def _ended(ended: TaskEnd) -> dict[str, Plain]:
    step, before = ended.step, ended.before
    made: dict[str, Plain] = {
        **held({"result": ended.result, "error": ended.error}),
        "step": str(step.step_id),
        "attempt": ended.attempt,
        "state": ended.state,
        "transaction": str(before.uuid),
        "before": before.status,
        "claim": None if before.claim_id is None else str(before.claim_id),
        "after": changed_row(before, ended.after, step.process, by_hand=ended.by_hand),
        "maker": ended.by,
        "at": ended.at,
    }
    if ended.children:
        made["children"] = [new_row(child, step.process) for child in ended.children]
    if ended.failure is not None:
        made["failure"] = error_row(ended.failure)
    if ended.arrived and before.parent_uuid is not None:
        made["arrived"] = str(before.parent_uuid)
    return made


async def of(conn: Connection, tenant: str, transaction: UUID) -> list[StepRow]:
    """The ledger of a Transaction, in the order of first begins."""
    return await queries.many(conn, _SQL["of"], {"tenant": tenant, "uuid": transaction}, StepRow)


async def current(conn: Connection, step: TaskStep) -> int | None:
    """The attempt that is under way; None where the step has ended or was never begun."""
    found = await queries.value(conn, _SQL["current"], {"tenant": step.tenant, "step_id": step.step_id})
    return None if found is None else int(found)


async def result(conn: Connection, tenant: str, step_id: UUID, work_attempt: int) -> Plain:
    """What came of a step that has ended, at this attempt of the walk or for good; None where it has not."""
    params = {"tenant": tenant, "step_id": step_id, "work_attempt": work_attempt}
    found: Plain = await queries.value(conn, _SQL["result"], params)
    return found
