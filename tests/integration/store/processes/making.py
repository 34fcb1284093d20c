"""Transactions and steps, ready-made, and short forms of what the tests do with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from casework.process import Transaction
from casework.store.database import Connection, Database
from casework.store.processes import claims, task_steps, transactions
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep

TENANT = "default"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
WAITING, WORKING, DONE = "PROCESSING_READY", "PROCESSING_IN_PROGRESS", "COMPLETED"
PROCESS = "processing"


def at(minutes: float) -> datetime:
    """An instant some minutes after the start."""
    return START + timedelta(minutes=minutes)


def made(**fields: Any) -> Transaction:
    """A Transaction that waits for a claim."""
    known: dict[str, Any] = {"uuid": uuid4(), "status": WAITING, "start_time": START}
    return Transaction(**{**known, **fields})


async def add(db: Database, *new: Transaction, **more: Any) -> list[bool]:
    """Insert them in one database transaction."""
    async with db.transaction() as conn:
        return [await transactions.insert(conn, each, "intake", "Mailbox", at(0), **more) for each in new]


async def take(conn: Connection, claim_id: UUID, most: int = 100, **changes: Any) -> list[Transaction]:
    """Claim what waits."""
    known: dict[str, Any] = {
        "status": WAITING,
        "into": WORKING,
        "claim_id": claim_id,
        "most": most,
        "process": PROCESS,
        "by": "ProcessingMonitor",
        "at": at(1),
    }
    tenant = changes.pop("tenant", TENANT)
    return await claims.claim(conn, tenant, **{**known, **changes})


async def claimed(db: Database, count: int = 1, **fields: Any) -> list[Transaction]:
    """New Transactions in a tray of their own."""
    claim_id = uuid4()
    await add(db, *(made(**fields) for _ in range(count)))
    async with db.transaction() as conn:
        return await take(conn, claim_id, count)


def step_of(transaction: Transaction, **changes: Any) -> TaskStep:
    """The work of the task `check` on it, in its tray."""
    known: dict[str, Any] = {
        "tenant": transaction.tenant,
        "claim_id": transaction.claim_id,
        "transaction": transaction.uuid,
        "status": transaction.status,
        "process": PROCESS,
        "task": "check",
        "path": "check.1",
        "kind": "plain",
    }
    return TaskStep(**{**known, **changes})


def end_of(step: TaskStep, begun: Begun, **changes: Any) -> TaskEnd:
    """The end of what has begun; `to` are fields of the Transaction that are others now."""
    assert begun.transaction is not None
    assert begun.attempt is not None
    to = changes.pop("to", {})
    known: dict[str, Any] = {
        "step": step,
        "attempt": begun.attempt,
        "before": begun.transaction,
        "after": replace(begun.transaction, **to),
        "by": step.task,
        "at": at(2),
    }
    return TaskEnd(**{**known, **changes})


async def begin(db: Database, *steps: TaskStep) -> list[Begun]:
    """Begin them, committed."""
    async with db.autocommit() as conn:
        return await task_steps.begin_all(conn, steps)


async def end(db: Database, *ends: TaskEnd) -> list[str]:
    """End them, committed."""
    async with db.autocommit() as conn:
        return list(await task_steps.end_all(conn, ends))


async def get(db: Database, uuid: UUID, tenant: str = TENANT) -> Transaction:
    """The row."""
    async with db.transaction() as conn:
        found = await transactions.get(conn, tenant, uuid)
    assert found is not None
    return found


async def ended(db: Database, **fields: Any) -> Transaction:
    """A Transaction that is COMPLETED."""
    (one,) = await claimed(db, 1, **fields)
    done = replace(one, status=DONE, end_time=at(5), claim_id=None)
    await write(db, one, done)
    return await get(db, one.uuid)


async def write(db: Database, before: Transaction, after: Transaction, **more: Any) -> None:
    """Write one, committed."""
    async with db.transaction() as conn:
        await transactions.write(conn, before, after, PROCESS, "check", at(5), **more)


def uuids(found: Sequence[Transaction]) -> list[UUID]:
    """Their ids."""
    return [each.uuid for each in found]


READ = """
select relname, seq_tup_read + coalesce(idx_tup_fetch, 0)
       + (select coalesce(sum(pg_stat_get_xact_tuples_returned(indexrelid)), 0) from pg_index where indrelid = relid)
from pg_stat_xact_user_tables where schemaname = 'process_ops'
"""


async def rows_read(conn: Connection) -> dict[str, int]:
    """How many rows and entries of indexes this session has read of each table, so far."""
    return {name: int(count) for name, count in await (await conn.execute(READ)).fetchall()}
