"""Lists for people, the figures of what was COMPLETED, and the check of a project's own tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from casework.errors import ConflictError, ProcessDeclarationError, StoreUnavailableError
from casework.process.transactions import child
from casework.store import runs
from casework.store.database import Database
from casework.store.processes import entities, lists, task_errors, transactions
from casework.store.processes.lists import Count, Wanted
from tests.integration.store.cases import execute, fetch
from tests.integration.store.cases import new_run as a_run
from tests.integration.store.processes.making import (
    PROCESS,
    TENANT,
    WAITING,
    WORKING,
    add,
    at,
    claimed,
    made,
    take,
    write,
)
from tests.integration.store.processes.test_task_steps import an_error


async def test_transactions_in_pages_by_what_is_asked_for(db: Database) -> None:
    """Newest first, each once, by status, process, claim, parent, clone and a part of the natural key."""
    rows = [made(start_time=at(number), natural_key=f"Mail-{number}") for number in range(5)]
    await add(db, *rows, made(tenant="other"))
    async with db.transaction() as conn:
        (first,) = await take(conn, uuid4(), 1)
    kid = child(first, "split.1", 1, {}, at(10))
    clone = made(start_time=at(11))
    await add(db, kid)
    await add(db, clone, cloned_from=first.uuid, business_key="ACME")

    async def found(**wanted: object) -> list[UUID]:
        async with db.transaction() as conn:
            one = await lists.page(conn, Wanted(TENANT, **wanted), None, 3)  # type: ignore[arg-type]  # by name
            seen, after = one.rows, one.next
            while after is not None:
                more = await lists.page(conn, Wanted(TENANT, **wanted), after, 3)  # type: ignore[arg-type]  # by name
                seen, after = [*seen, *more.rows], more.next
        return [row.uuid for row in seen]

    newest = [row.uuid for row in reversed(rows)]
    assert await found() == [clone.uuid, kid.uuid, *newest]
    assert await found(status=WORKING) == [kid.uuid, first.uuid]
    assert await found(process=PROCESS, status=WAITING) == []
    assert await found(claim_id=first.claim_id) == [kid.uuid, first.uuid]
    assert await found(parent=first.uuid) == [kid.uuid]
    assert await found(clone_of=first.uuid) == [clone.uuid]
    assert await found(text="mail-3") == [rows[3].uuid]
    async with db.transaction() as conn:
        one = await lists.detail(conn, TENANT, clone.uuid)
        assert await lists.detail(conn, "third", clone.uuid) is None
        grown = await lists.detail(conn, TENANT, kid.uuid)
    assert one
    assert (one.cloned_from, one.business_key, one.root_uuid, one.by_hand) == (first.uuid, "ACME", clone.uuid, False)
    assert grown
    assert grown.root_uuid == first.uuid


async def test_how_many_there_are_by_process_and_status(db: Database) -> None:
    """Open ones, and those that ended since an instant; how many of them are in trays."""
    first, second = await claimed(db, 2)
    await add(db, made(start_time=at(3)), made(tenant="other"))
    await write(db, first, replace(first, status="COMPLETED", end_time=at(5), claim_id=None))
    async with db.transaction() as conn:
        assert await lists.counts(conn, TENANT, at(5)) == [
            Count(None, WAITING, 1, 0, at(3)),
            Count(PROCESS, "COMPLETED", 1, 0, at(0)),
            Count(PROCESS, WORKING, 1, 1, second.start_time),
        ]
        assert [count.status for count in await lists.counts(conn, TENANT, at(6))] == [WAITING, WORKING]


async def test_errors_in_pages(db: Database) -> None:
    """BP-23. Newest first, of a process, of a root."""
    one, two = await claimed(db, 2)
    errors = [an_error(one, failed=at(number)) for number in range(4)]
    other = an_error(two, process="intake", failed=at(9))
    async with db.transaction() as conn:
        for each in (*errors, other):
            await task_errors.record(conn, TENANT, each)
        first = await lists.errors(conn, TENANT, limit=3)
        assert first.rows == [other, errors[3], errors[2]]
        assert (await lists.errors(conn, TENANT, after=first.next, limit=3)).rows == [errors[1], errors[0]]
        assert (await lists.errors(conn, TENANT, process="intake")).rows == [other]
        assert (await lists.errors(conn, TENANT, root=one.uuid)).rows == errors[::-1]
        assert (await lists.errors(conn, "other")).rows == []


async def test_a_completed_transaction_has_its_figures(db: Database) -> None:
    """BP-5. One row, written with the COMPLETED transition: stage times, touched by a person or not, errors, cost."""
    (one,) = await claimed(db)
    run_id = uuid4()
    async with db.transaction() as conn:
        for status, minute in (("NEXT", 3), (WORKING, 4), ("NEXT", 6)):
            after = replace(one, status=status)
            await transactions.write(conn, one, after, PROCESS, "check", at(minute))
            one = after
        await task_errors.record(conn, TENANT, an_error(one))
    await _linked_run(db, one.uuid, run_id, Decimal("0.25"))
    done = replace(one, status="COMPLETED", end_time=at(10), claim_id=None, straight_through=False)
    await write(db, one, done, by_hand=True)
    async with db.transaction() as conn:
        found = await lists.analytics(conn, TENANT, one.uuid)
    assert found
    assert found.stage_times == {WAITING: 60, WORKING: (2 + 2) * 60, "NEXT": (1 + 4) * 60}
    assert (found.seconds, found.start_time, found.end_time) == (Decimal(600), at(0), at(10))
    assert (found.straight_through, found.by_hand, found.errors, found.cost) == (False, True, 1, Decimal("0.25"))


async def _linked_run(db: Database, uuid: UUID, run_id: UUID, cost: Decimal) -> None:
    async with db.transaction() as conn:
        await runs.create_pending(conn, a_run(run_id))
    await execute(db, "update agent_ops.agent_runs set cost = %s where run_id = %s", cost, run_id)
    await execute(
        db,
        "insert into process_ops.transaction_runs (transaction_uuid, run_id, step_id, task, at)"
        " values (%s, %s, %s, 'ask', now())",
        uuid,
        run_id,
        uuid4(),
    )


async def test_only_what_was_completed_is_in_analytics(db: Database, admin_db: Database) -> None:
    """BP-5. What is ABORTED or open is not, what rolls back is not, and nobody adds or changes a row."""
    first, second, third = await claimed(db, 3)
    await write(db, first, replace(first, status="ABORTED", end_time=at(5), claim_id=None))
    async with db.transaction() as conn:
        done = replace(second, status="COMPLETED", end_time=at(5))
        await transactions.write(conn, second, done, PROCESS, "check", at(5))
        await conn.rollback()
    assert await fetch(db, "select from process_ops.transaction_analytics") == []
    await write(db, third, replace(third, status="COMPLETED", end_time=at(5) + timedelta(milliseconds=250)))
    found = await fetch(db, "select transaction_uuid, seconds, errors, cost from process_ops.transaction_analytics")
    assert found == [{"transaction_uuid": third.uuid, "seconds": Decimal("300.25"), "errors": 0, "cost": 0}]
    with pytest.raises(StoreUnavailableError, match="lacks a right"):
        await execute(db, "update process_ops.transaction_analytics set cost = 1")
    with pytest.raises(ConflictError, match="written once"):
        await execute(admin_db, "update process_ops.transaction_analytics set cost = 1")
    with pytest.raises(ConflictError, match="kept"):
        await execute(admin_db, "delete from process_ops.transaction_analytics")


TABLES = """
create table public.good (id integer, transaction_uuid uuid);
select process_ops.guard_entities('public.good');
create table public.bare (id integer, transaction_uuid uuid);
create table public.half (id integer, transaction_uuid uuid);
select process_ops.guard_entities('public.half');
alter table public.half replica identity default;
create table public."Off" (id integer, transaction_uuid uuid);
select process_ops.guard_entities('public."Off"');
alter table public."Off" disable trigger all
"""


async def test_tables_of_entities_without_the_guard_are_refused(db: Database, admin_db: Database) -> None:
    """BP-3. At start: each table is named with what it lacks, and what to put into a migration."""
    for statement in TABLES.strip().split(";\n"):
        await execute(admin_db, statement)
    async with db.transaction() as conn:
        await entities.check_guarded(conn, [])
        await entities.check_guarded(conn, ["public.good", "good"])
        with pytest.raises(ProcessDeclarationError) as caught:
            await entities.check_guarded(
                conn, ["public.good", "public.bare", "public.half", 'public."Off"', "public.absent"]
            )
    told = str(caught.value)
    assert "public.good" not in told
    assert "'public.bare' lacks the guard of terminal Transactions and REPLICA IDENTITY FULL. Run select" in told
    assert "'public.half' lacks REPLICA IDENTITY FULL. Run select process_ops.guard_entities('public.half', " in told
    assert "'public.\"Off\"' lacks the guard of terminal Transactions." in told
    assert "There is no table 'public.absent'. Name it as schema.table" in told
