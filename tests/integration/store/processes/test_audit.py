"""The books of business processes: they balance after what the product does, and each fault is found by its id."""

from __future__ import annotations

from uuid import uuid4

import pytest

from casework.process import Transaction
from casework.process.transactions import child
from casework.store.database import Database
from casework.store.processes import audit
from casework.store.processes.audit import Books
from tests.integration.store.processes.making import (
    TENANT,
    add,
    at,
    begin,
    claimed,
    end,
    end_of,
    ended,
    made,
    step_of,
)
from tests.integration.store.processes.test_task_steps import an_error


async def books(db: Database, tenant: str = TENANT) -> Books:
    async with db.transaction() as conn:
        return await audit.books(conn, tenant)


async def break_(db: Database, statement: str, *params: object) -> None:
    """As the owner, past every guard: what no writer of the product may do."""
    async with db.transaction() as conn:
        await conn.execute("reset role")
        await conn.execute("set local session_replication_role = replica")
        await conn.execute(statement.encode(), params)


async def settled(db: Database) -> tuple[Transaction, Transaction, Transaction, Transaction]:
    """One COMPLETED, one in a tray with a completed step, one that failed in a step, and a child of the second."""
    done = await ended(db, natural_key="mail-1")
    working, failed = await claimed(db, 2)
    steps = [step_of(working), step_of(failed)]
    first, second = await begin(db, *steps)
    error = an_error(failed)
    to = {"status": "HAS_ERROR", "status_before_error": failed.status, "claim_id": None}
    assert await end(
        db, end_of(steps[0], first), end_of(steps[1], second, state="FAILED", error="no", failure=error, to=to)
    ) == ["written", "written"]
    kid = child(working, "split.1", 1, {}, at(3))
    await add(db, kid)
    return done, working, failed, kid


async def test_books_of_what_the_product_writes_balance(db: Database) -> None:
    """Claims, steps, errors, children and ends leave nothing that does not agree, and are counted."""
    await settled(db)
    found = await books(db)
    assert found.faults == []
    counts = found.counts
    assert (counts.transactions, counts.open, counts.in_trays, counts.completed) == (4, 3, 2, 1)
    assert (counts.failed, counts.steps) == (1, 2)
    assert (await books(db, "other")).counts.transactions == 0


STAGES, STEPS = "process_ops.transaction_stages", "process_ops.transaction_steps"
BREAKS: dict[str, tuple[int, str]] = {
    "stage log ends otherwise": (1, "update process_ops.transactions set status = 'SUBMISSION_IN_PROGRESS'"),
    "stage log has a gap": (1, f"update {STAGES} set before = 'ABORTED' where before is not null and transaction_uuid"),
    "ended in a tray": (0, "update process_ops.transactions set claim_id = gen_random_uuid()"),
    "analytics are missing": (0, "delete from process_ops.transaction_analytics where transaction_uuid"),
    "analytics of what is not COMPLETED": (0, "delete from process_ops.transactions"),
    "step is STARTED and its tray is over": (1, "update process_ops.transactions set claim_id = null"),
    "error is missing": (2, "delete from process_ops.transaction_errors where transaction_uuid"),
    "family is incomplete": (3, "update process_ops.transactions set root_uuid = gen_random_uuid()"),
}


@pytest.mark.parametrize("fault", BREAKS)
async def test_each_fault_is_found_with_the_id_of_its_transaction(db: Database, fault: str) -> None:
    """The check can fail, for each kind of fault, and names the row that is at fault."""
    place, statement = BREAKS[fault]
    broken = (await settled(db))[place]
    if fault.startswith("step is STARTED"):
        await break_(
            db, f"update {STEPS} set state = 'STARTED', ended_at = null where transaction_uuid = %s", broken.uuid
        )
    where = " = %s" if statement.endswith("transaction_uuid") else " where uuid = %s"
    await break_(db, statement + where, broken.uuid)
    assert (fault, broken.uuid) in {(each.fault, each.id) for each in (await books(db)).faults}


async def test_a_claim_that_nobody_made_and_one_that_took_more(db: Database) -> None:
    """Faults of a claim are told with the claim's id."""
    await settled(db)
    (one,) = await claimed(db)
    claim, unknown = one.claim_id, uuid4()
    await add(db, made(claim_id=unknown))
    await break_(
        db,
        f"insert into {STAGES} (tenant, transaction_uuid, before, after, process, made_by, claim_id, at) "
        "select tenant, transaction_uuid, after, after, process, made_by, claim_id, at "
        f"from {STAGES} where claim_id = %s",
        claim,
    )
    assert {("claim is unknown", unknown), ("claim took more than it says", claim)} == {
        (each.fault, each.id) for each in (await books(db)).faults
    }


async def test_a_visit_that_is_completed_twice(db: Database) -> None:
    """The same visit of a task under two ids is no one step."""
    _, working, _, _ = await settled(db)
    columns = (
        "transaction_uuid, claim_id, process, task, path, kind, task_version, state, attempt, work_attempt, begun_by, "
        "started_at, updated_at, ended_at"
    )
    await break_(
        db,
        f"insert into {STEPS} (tenant, step_id, {columns}) select tenant, gen_random_uuid(), {columns} from {STEPS} "
        "where transaction_uuid = %s",
        working.uuid,
    )
    assert [(each.fault, each.id) for each in (await books(db)).faults] == [
        ("visit is COMPLETED more than once", working.uuid)
    ]
