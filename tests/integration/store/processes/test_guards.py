"""What nobody may do to a Transaction that has ended, or to its rows, tried with raw SQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from casework.errors import ConflictError, StoreUnavailableError
from casework.process import Transaction
from casework.store.database import Database
from casework.store.processes import task_errors, transactions
from tests.integration.store.cases import execute, fetch
from tests.integration.store.processes.making import (
    DONE,
    PROCESS,
    add,
    at,
    begin,
    claimed,
    end,
    end_of,
    ended,
    get,
    made,
    step_of,
    write,
)
from tests.integration.store.processes.test_task_steps import an_error

STAYS = "transactions_terminal_stays"


@pytest.fixture
async def retention(database_dsn: str) -> AsyncIterator[Database]:
    """In the role for erasure."""
    async with await Database.open(database_dsn, role="casework_retention") as opened:
        yield opened


async def worked(db: Database) -> Transaction:
    """A Transaction with a row in every table, which has ended."""
    parent = made(status="SPLIT")
    await add(db, parent)
    (one,) = await claimed(db, parent_uuid=parent.uuid)
    step = step_of(one)
    (begun,) = await begin(db, step)
    await end(db, end_of(step, begun, failure=an_error(one), arrived=True))
    await execute(
        db,
        "insert into process_ops.transaction_runs (transaction_uuid, run_id, step_id, task, at)"
        " values (%s, %s, %s, 'ask', now())",
        one.uuid,
        uuid4(),
        uuid4(),
    )
    await begin(db, step_of(one, path="check.2"))
    await write(db, one, replace(one, status=DONE, end_time=at(5), claim_id=None))
    return await get(db, one.uuid)


@pytest.mark.parametrize("status", ["COMPLETED", "ABORTED", "PAID_OUT"])
async def test_a_terminal_transaction_stays_as_it_is(db: Database, admin_db: Database, status: str) -> None:
    """BP-3. Whoever it is, and whatever the column: what has ended is neither changed nor deleted."""
    (one,) = await claimed(db)
    done = replace(one, status=status, end_time=at(5), claim_id=None)
    await write(db, one, done)
    with pytest.raises(ConflictError, match=rf"Transaction {one.uuid} is {status} and stays as it is"):
        await write(db, done, replace(done, priority=1))
    for column in ("priority = 1", "status = 'HAS_ERROR', end_time = null", "claim_id = gen_random_uuid()"):
        with pytest.raises(ConflictError, match=STAYS):
            await execute(admin_db, f"update process_ops.transactions set {column}")
    with pytest.raises(ConflictError, match=STAYS):
        await execute(admin_db, "delete from process_ops.transactions")
    assert await get(db, one.uuid) == done


@pytest.mark.parametrize(
    ("status", "end_time"), [("COMPLETED", None), ("ABORTED", None), ("HAS_ERROR", 5), ("ERROR_IN_PROGRESS", 5)]
)
async def test_an_end_has_a_time_and_an_error_has_none(db: Database, status: str, end_time: int | None) -> None:
    """BP-3. No row is COMPLETED without being guarded, and none in error is closed."""
    with pytest.raises(ConflictError, match=r"transactions_(ended_when_terminal|open_in_error)"):
        await add(db, made(status=status, end_time=None if end_time is None else at(end_time)))


WAITS = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
RELATED = ["stages", "steps", "errors", "arrivals", "runs", "analytics"]


@pytest.mark.parametrize("table", RELATED[:-1])
async def test_rows_of_a_terminal_transaction_stay_as_they_are(db: Database, admin_db: Database, table: str) -> None:
    """BP-3. Nothing is added to it, changed or taken away."""
    one = await worked(db)
    name = f"process_ops.transaction_{table}"
    (row, *_) = await fetch(db, f"select * from {name} where transaction_uuid = %s", one.uuid)
    changing = "at" if "at" in row else "updated_at" if "updated_at" in row else "failed_at"
    for statement in (f"update {name} set {changing} = now()", f"delete from {name}"):
        with pytest.raises(ConflictError, match=r"kept|written once|stays"):
            await execute(admin_db, f"{statement} where transaction_uuid = %s", one.uuid)
    copied = [column for column in row if column != "id"]
    fresh = {"step_id": "gen_random_uuid()", "uuid": "gen_random_uuid()", "run_id": "gen_random_uuid()"}
    values = ", ".join(fresh.get(column, column) for column in copied)
    with pytest.raises(ConflictError, match=STAYS):
        await execute(
            db,
            f"insert into {name} ({', '.join(copied)}) select {values} from {name} where transaction_uuid = %s limit 1",
            one.uuid,
        )


async def test_what_belongs_to_the_end_is_written_with_it(db: Database) -> None:
    """BP-3. The database transaction that ends it may write its other rows before and after; none later."""
    (one,) = await claimed(db)
    done = replace(one, status=DONE, end_time=at(5), claim_id=None)
    async with db.transaction() as conn:
        await transactions.write(conn, one, done, PROCESS, "check", at(5))
        async with conn.transaction():
            assert await task_errors.record(conn, one.tenant, an_error(one))
    with pytest.raises(ConflictError, match=STAYS):
        async with db.transaction() as conn:
            await task_errors.record(conn, one.tenant, replace(an_error(one), uuid=uuid4()))


async def test_retention_takes_a_transaction_that_has_ended_with_all_its_rows(
    db: Database, admin_db: Database, retention: Database
) -> None:
    """BP-3. Only the role for erasure is exempt; it takes the whole, and no open one."""
    one = await worked(db)
    assert await execute(retention, "update process_ops.transactions set data = '{}' where uuid = %s", one.uuid) == 1
    with pytest.raises(ConflictError, match="transactions_deleted_when_ended"):
        await execute(retention, "delete from process_ops.transactions")
    assert await execute(retention, "delete from process_ops.transactions where end_time is not null") == 1
    for table in RELATED:
        assert not await fetch(
            admin_db, f"select from process_ops.transaction_{table} where transaction_uuid = %s", one.uuid
        )


async def test_the_runtime_deletes_nothing(db: Database, admin_db: Database) -> None:
    """BP-3. Its role has no right to delete, to truncate, or to rewrite what is written once."""
    tables = await fetch(
        admin_db, "select relname from pg_class where relnamespace = 'process_ops'::regnamespace and relkind = 'r'"
    )
    assert len(tables) >= 7
    statements = [f"delete from process_ops.{row['relname']}" for row in tables]
    statements += [f"truncate process_ops.{row['relname']} cascade" for row in tables]
    statements += [f"update process_ops.transaction_{name} set at = now()" for name in ("stages", "claims", "runs")]
    for statement in statements:
        with pytest.raises(StoreUnavailableError, match="lacks a right"):
            await execute(db, statement)


ENTITIES = """
create table public.mails (id integer primary key, transaction_uuid uuid, subject text);
create table public.bills (tenant text not null, id integer primary key, of_case uuid, subject text);
select process_ops.guard_entities('public.mails');
select process_ops.guard_entities('bills', 'of_case');
grant select, insert, update, delete on public.mails, public.bills to casework_runtime, casework_retention;
"""


@pytest.fixture
async def _entities(admin_db: Database) -> None:
    for statement in ENTITIES.strip().split(";\n"):
        await execute(admin_db, statement.replace("'bills'", "'public.bills'").rstrip(";"))


async def put(db: Database, number: int, transaction: UUID | None) -> None:
    await execute(db, "insert into public.mails values (%s, %s, 'x')", number, transaction)


@pytest.mark.usefixtures("_entities")
async def test_entities_of_a_terminal_transaction_cannot_be_modified(
    db: Database, admin_db: Database, retention: Database
) -> None:
    """BP-3. A project's own table with the guard: no row of what has ended is changed, added, moved in or away."""
    (open_one,) = await claimed(db)
    (one,) = await claimed(db)
    for number, uuid in enumerate([one.uuid, open_one.uuid, None]):
        await put(db, number, uuid)
    await write(db, one, replace(one, status=DONE, end_time=at(5), claim_id=None))
    for statement in (
        "update public.mails set subject = 'y' where id = 0",
        "update public.mails set transaction_uuid = null where id = 0",
        f"update public.mails set transaction_uuid = '{one.uuid}' where id = 1",
        "delete from public.mails where id = 0",
        f"insert into public.mails values (9, '{one.uuid}', 'x')",
    ):
        for database in (db, admin_db):
            with pytest.raises(
                ConflictError, match=rf"{one.uuid} is COMPLETED and stays as it is, .* in (public.)?mails"
            ):
                await execute(database, statement)
    assert await execute(db, "update public.mails set subject = 'y' where id > 0") == 2
    assert await execute(db, "delete from public.mails where id > 0") == 2
    assert await execute(retention, "delete from public.mails where id = 0") == 1


@pytest.mark.usefixtures("_entities")
async def test_an_entity_is_not_modified_while_its_transaction_ends(db: Database, admin_db: Database) -> None:
    """BP-3. Whoever writes one while the end is not yet committed waits for it, and is refused then."""
    (one,) = await claimed(db)
    await put(db, 1, one.uuid)
    async with db.transaction() as conn:
        done = replace(one, status=DONE, end_time=at(5), claim_id=None)
        await transactions.write(conn, one, done, PROCESS, "check", at(5))
        late = asyncio.create_task(execute(db, "update public.mails set subject = 'y'"))
        async with asyncio.timeout(30):
            while not late.done() and not await fetch(admin_db, WAITS):  # noqa: ASYNC110  # the database tells no event
                await asyncio.sleep(0.01)
    with pytest.raises(ConflictError, match=STAYS):
        await late


@pytest.mark.usefixtures("_entities")
async def test_the_guard_knows_tenants(db: Database) -> None:
    """A table with a column `tenant` is guarded by the Transactions of that tenant."""
    one = await ended(db)
    await add(db, made(uuid=one.uuid, tenant="other"))
    await execute(db, "insert into public.bills values ('other', 1, %s, 'x')", one.uuid)
    with pytest.raises(ConflictError, match=STAYS):
        await execute(db, "insert into public.bills values ('default', 2, %s, 'x')", one.uuid)


@pytest.mark.usefixtures("_entities")
async def test_entities_move_to_the_clone_in_the_transaction_that_aborts(db: Database) -> None:
    """BP-25. Clone, reassignment and ABORTED are one database transaction, in any order."""
    (one,) = await claimed(db)
    await put(db, 1, one.uuid)
    clone = made()
    async with db.transaction() as conn:
        aborted = replace(one, status="ABORTED", end_time=at(5), claim_id=None)
        await transactions.write(conn, one, aborted, PROCESS, "abort", at(5))
        assert await transactions.insert(conn, clone, PROCESS, "abort", at(5), cloned_from=one.uuid)
        await conn.execute("update public.mails set transaction_uuid = %s", (clone.uuid,))
    assert await fetch(db, "select transaction_uuid from public.mails") == [{"transaction_uuid": clone.uuid}]


async def test_a_table_without_the_column_is_refused(admin_db: Database) -> None:
    """The helper for a project's migration says what the table lacks."""
    await execute(admin_db, "create table public.plain (id integer, transaction_uuid text)")
    with pytest.raises(StoreUnavailableError, match="has no column transaction_uuid of type uuid"):
        await execute(admin_db, "select process_ops.guard_entities('public.plain')")
