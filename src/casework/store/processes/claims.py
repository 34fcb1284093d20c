"""Claims: Transactions that wait in a status are taken into trays, each by one claim.

A claim is one guarded statement, in a function of the database (migration `transaction_work`), over the index of what
waits: the highest priority first, then the earliest due time, then the oldest. What another claim holds is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from casework.errors import InputError
from casework.process import Transaction
from casework.store import queries
from casework.store.database import Connection
from casework.store.processes.plain_rows import transaction_of

_SQL = queries.load("claims")


async def claim(
    conn: Connection,
    tenant: str,
    *,
    status: str,
    into: str,
    claim_id: UUID,
    most: int,
    process: str,
    by: str,
    at: datetime,
    per_key: int | None = None,
) -> list[Transaction]:
    """Take up to `most` Transactions that wait in `status`, set to `into`, in the order of claims.

    Where the claim was made before, what still bears it is returned and nothing new is taken. `by` is the Monitor.
    `per_key`: so many of one business key may be in trays of the process at once; None is no limit.

    Raises:
        InputError: `most` or `per_key` is below 1.
    """
    trays = await claim_trays(
        conn,
        tenant,
        status=status,
        into=into,
        claim_ids=[claim_id],
        size=most,
        process=process,
        by=by,
        at=at,
        per_key=per_key,
    )
    return trays[claim_id]


async def claim_trays(
    conn: Connection,
    tenant: str,
    *,
    status: str,
    into: str,
    claim_ids: Sequence[UUID],
    size: int,
    process: str,
    by: str,
    at: datetime,
    per_key: int | None = None,
) -> Mapping[UUID, list[Transaction]]:
    """The same for several trays of up to `size` at once, filled one after the other; by claim, the empty ones too.

    Where one of the claims was made before, all were: what still bears them is returned.

    Raises:
        InputError: `size` or `per_key` is below 1, or `claim_ids` is empty.
    """
    if size < 1 or not claim_ids:
        raise InputError(f"Nothing can be claimed into {len(claim_ids)} trays of {size}. Pass 1 or more.", field="size")
    if per_key is not None and per_key < 1:
        raise InputError(f"per_key is {per_key}: nothing could be claimed. Pass 1 or more, or None.", field="per_key")
    claims = list(claim_ids)
    params = queries.Writing(
        tenant=tenant, status=status, into=into, claims=claims, size=size, process=process, by=by, at=at
    )
    query = _SQL["claim" if per_key is None else "claim_by_key"]
    rows = await queries.dicts(conn, query, {**params, "per_key": per_key})
    taken = [transaction_of(row) for row in sorted(rows, key=lambda row: row["place"])]
    if not taken:
        taken = await queries.many(conn, _SQL["of_claims"], {"tenant": tenant, "claims": claims}, Transaction)
    return {claim_id: [each for each in taken if each.claim_id == claim_id] for claim_id in claims}


async def open_trays(conn: Connection, tenant: str, process: str) -> int:
    """How many trays of a process hold Transactions that have not ended."""
    return int(await queries.value(conn, _SQL["open_trays"], {"tenant": tenant, "process": process}))
