"""Transactions: read, locked, added, written over what is expected; families of a split; the log of stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.errors import ConflictError, NotFoundError
from casework.process import Transaction
from casework.process.working import Family
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.plain_rows import as_json, changed_row, new_row, transaction_of

_SQL = queries.load("transactions")


@dataclass(frozen=True, slots=True)
class StageRow:
    """A status that a Transaction took: `made_by` is a Monitor's class, a task, `finalizer`, or `error`.

    `before` is None at its birth; `claim_id` is the claim that it had before it.
    """

    before: str | None
    after: str
    process: str
    made_by: str
    claim_id: UUID | None
    at: datetime


async def get(conn: Connection, tenant: str, uuid: UUID) -> Transaction | None:
    """A Transaction by its id."""
    return await queries.one(conn, _SQL["get"], {"tenant": tenant, "uuid": uuid}, Transaction)


async def lock(conn: Connection, tenant: str, uuid: UUID) -> Transaction | None:
    """The same, held to the end of the database transaction: nobody else writes it meanwhile."""
    return await queries.one(conn, _SQL["lock"], {"tenant": tenant, "uuid": uuid}, Transaction)


async def lock_all(conn: Connection, tenant: str, uuids: Sequence[UUID]) -> Mapping[UUID, Transaction]:
    """The same for several, by their ids: in the order of their ids, as all who hold several do."""
    found = await queries.many(conn, _SQL["lock_all"], {"tenant": tenant, "uuids": list(uuids)}, Transaction)
    return {each.uuid: each for each in found}


async def insert(
    conn: Connection,
    made: Transaction,
    process: str,
    by: str,
    at: datetime,
    *,
    cloned_from: UUID | None = None,
    business_key: str | None = None,
) -> bool:
    """Add a Transaction and the stage of its birth. False: its id or natural key is there already, nothing is written.

    `cloned_from` is the failed one that it takes the place of; `business_key` what limits of concurrency count by.

    Raises:
        InputError: a key is blank or too long.
    """
    row = new_row(made, process, cloned_from=cloned_from, business_key=business_key)
    params = queries.Writing(tenant=made.tenant, by=by, at=at) | {"made": as_json(row)}
    return bool(await queries.value(conn, _SQL["insert"], params))


async def write(
    conn: Connection,
    before: Transaction,
    after: Transaction,
    process: str,
    by: str,
    at: datetime,
    *,
    by_hand: bool = False,
) -> None:
    """Write `after` over `before`, whose status and claim are still the row's; a new status is a stage.

    `by_hand` marks one that a person completed.

    Raises:
        ConflictError: the row has another status or claim, is terminal, or is not there. Nothing is written.
    """
    params = queries.Writing(
        tenant=before.tenant, uuid=before.uuid, status=before.status, claim_id=before.claim_id, by=by, at=at
    )
    row = changed_row(before, after, process, by_hand=by_hand)
    if not await queries.value(conn, _SQL["write"], params | {"after": as_json(row)}):
        raise ConflictError(
            f"Transaction {before.uuid} of tenant {before.tenant!r} is not any more in status {before.status} with "
            f"claim {before.claim_id}, or is not there. Read it again."
        )


async def write_all(
    conn: Connection, changes: Sequence[tuple[Transaction, Transaction]], process: str, by: str, at: datetime
) -> None:
    """Write pairs of before and after, of one tenant, whose rows are held and are as before; new statuses are stages.

    Raises:
        ConflictError: (through `Database.transaction`) the database refused a row.
    """
    if not changes:
        return
    params = queries.Writing(tenant=changes[0][0].tenant, by=by, at=at) | {
        "uuids": [before.uuid for before, _ in changes],
        "afters": as_json(
            [{"uuid": str(before.uuid), **changed_row(before, after, process)} for before, after in changes]
        ),
    }
    await queries.value(conn, _SQL["write_all"], params)


async def family(conn: Connection, transaction: Transaction) -> Family:
    """The children of a Transaction, and which have come to their join and which have not, in the order of their split.

    A child that was cloned counts by its clone.
    """
    rows = await queries.dicts(conn, _SQL["family"], {"tenant": transaction.tenant, "uuid": transaction.uuid})
    arrived, away = (tuple(transaction_of(row) for row in rows if row["arrived"] is come) for come in (True, False))
    return Family(len(rows), arrived, away)


async def arrive(conn: Connection, transaction: Transaction, task: str) -> None:
    """A child has come to the join `task`; for one that has no parent, nothing."""
    if transaction.parent_uuid is None:
        return
    params = queries.Writing(
        tenant=transaction.tenant, parent=transaction.parent_uuid, uuid=transaction.uuid, task=task
    )
    await queries.run(conn, _SQL["arrive"], params)


async def root(conn: Connection, transaction: Transaction) -> UUID:
    """The Transaction that it was split from in the first place, or itself.

    Raises:
        NotFoundError: there is no such Transaction.
    """
    found = await queries.value(conn, _SQL["root"], {"tenant": transaction.tenant, "uuid": transaction.uuid})
    if found is None:
        raise NotFoundError(f"There is no Transaction {transaction.uuid} of tenant {transaction.tenant!r}.")
    return UUID(str(found))


async def of_claim(conn: Connection, tenant: str, claim_id: UUID) -> list[Transaction]:
    """What bears the claim, in the order of claims."""
    return await queries.many(conn, _SQL["of_claim"], {"tenant": tenant, "claim_id": claim_id}, Transaction)


async def release(conn: Connection, tenant: str, claim_id: UUID) -> int:
    """Let go of what still bears the claim and has not ended; how many that were."""
    return await queries.run(conn, _SQL["release"], {"tenant": tenant, "claim_id": claim_id})


async def stages(conn: Connection, tenant: str, uuid: UUID) -> list[StageRow]:
    """The log of its stages, from its birth."""
    return await queries.many(conn, _SQL["stages"], {"tenant": tenant, "uuid": uuid}, StageRow)


async def was_made_by(conn: Connection, transaction: Transaction, by: str, claim_id: UUID) -> bool:
    """Whether it was `by` in the tray `claim_id` that gave the Transaction the status that it has."""
    params = {
        "tenant": transaction.tenant,
        "uuid": transaction.uuid,
        "by": by,
        "claim_id": claim_id,
        "status": transaction.status,
    }
    return bool(await queries.value(conn, _SQL["was_made_by"], params))
