"""A transaction that is lent to code which is not ours: it can write, and neither end the transaction nor keep it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from casework.errors import FatalError, RetryableError
from casework.store import ledger
from casework.store.database import Connection, Database
from casework.store.lent import LentTransaction, lent
from tests.integration.store.cases import claim, done, execute, fetch, tool_claim

EFFECT = "insert into public.effect values ('made')"


@pytest.fixture
async def lender(db: Database, admin_db: Database) -> Database:
    """The runtime's pool, and a table to write in."""
    await execute(admin_db, "create table public.effect (how text primary key deferrable initially deferred)")
    await execute(admin_db, "grant all on public.effect to public")
    await execute(admin_db, "grant pg_signal_backend to casework_runtime")
    return db


@asynccontextmanager
async def borrowing(db: Database) -> AsyncIterator[LentTransaction]:
    """A transaction of the engine's, with a write of its own before it is lent."""
    async with db.transaction() as conn:
        await conn.execute(b"insert into public.effect values ('engine')")
        async with lent(conn) as borrowed:
            yield borrowed


async def borrow(db: Database, *statements: Any) -> None:
    async with borrowing(db) as borrowed:
        for statement in statements:
            await borrowed.execute(statement)


async def effects(db: Database) -> list[str]:
    return [row["how"] for row in await fetch(db, "select how from public.effect order by how")]


ENDINGS = [
    "commit",
    " -- now\n/* a /* nested */ one */ ; COMMIT",
    b"rollback",
    sql.SQL("abort"),
    "begin",
    "start transaction",
    "end",
    "savepoint mine",
    "release savepoint mine",
    "reset role",
    "set role postgres",
    "set local statement_timeout = 0",
    "set session authorization postgres",
    "prepare transaction 'x'",
    "deallocate all",
    "discard all",
]


@pytest.mark.parametrize("statement", ENDINGS)
async def test_what_ends_or_reconfigures_is_refused(lender: Database, statement: Any) -> None:
    """DA-27. By its first word, behind comments too; nothing of the transaction is kept, the engine's part neither."""
    with pytest.raises(FatalError, match="belong to the engine"):
        await borrow(lender, EFFECT, statement)
    assert await effects(lender) == []


async def test_only_statements_are_lent(lender: Database) -> None:
    """DA-27. What the driver offers to end a transaction, or to get at the connection, is not there."""
    names = ("commit", "rollback", "close", "set_autocommit", "autocommit", "pipeline", "connection", "pgconn")
    async with borrowing(lender) as borrowed:
        for name in names:
            assert not hasattr(borrowed, name)
        assert not hasattr(borrowed.cursor(), "connection")


@pytest.mark.parametrize(
    "statement", ["select 1; commit", "do $$ begin commit; end $$", "do $$ begin rollback; end $$"]
)
async def test_the_server_refuses_hidden_ends(lender: Database, statement: str) -> None:
    """DA-27. A second statement behind the first one, a commit in a block: the server's error, and nothing is kept."""
    with pytest.raises((FatalError, RetryableError)):
        await borrow(lender, EFFECT, statement)
    assert await effects(lender) == []


@pytest.mark.parametrize("role", ["postgres", "casework_policy_owner", "none"])
async def test_another_role_at_the_end_is_fatal(lender: Database, role: str) -> None:
    """DA-27. A role that was changed inside a function is found at the end, and nothing is kept."""
    async with lender.transaction() as conn:
        superuser = str((await (await conn.execute(b"select session_user")).fetchall())[0][0])
    named = superuser if role == "postgres" else role
    with pytest.raises(FatalError, match="changed its role"):
        async with borrowing(lender) as borrowed:
            await borrowed.execute("select set_config('role', %s, false)", (named,))
    assert await effects(lender) == []


@pytest.mark.parametrize("ending", [[b"commit", b"begin"], [b"commit"], [b"rollback"], [b"rollback", b"begin"]])
async def test_a_commit_by_the_back_door_is_not_kept_as_good(lender: Database, ending: list[bytes]) -> None:
    """DA-27. Whatever way was found: it is told for good, so that it is not done a second time."""
    with pytest.raises(FatalError, match="ended its transaction"):
        await _through_the_back_door(lender, ending)


async def _through_the_back_door(db: Database, statements: list[bytes]) -> None:
    async with borrowing(db) as borrowed:
        conn: Any = vars(borrowed)["_LentTransaction__conn"]
        for each in statements:
            conn.pgconn.exec_(each)


async def test_a_caught_error_breaks_nothing(lender: Database) -> None:
    """A refused statement undoes only itself, or the block that it stands in."""
    async with borrowing(lender) as borrowed:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await borrowed.execute("select 1 / %s", (0,))
        with pytest.raises(psycopg.errors.UndefinedTable):
            await _block_that_fails(borrowed)
        with pytest.raises(psycopg.errors.NotNullViolation):
            await borrowed.executemany("insert into public.effect values (%s)", [("undone",), (None,)])
        await borrowed.executemany("insert into public.effect values (%s)", [("a",), ("b",)])
    assert await effects(lender) == ["a", "b", "engine"]


async def _block_that_fails(borrowed: LentTransaction) -> None:
    async with borrowed.transaction():
        await borrowed.execute("insert into public.effect values ('undone')")
        await borrowed.execute("select * from public.nothing")


async def test_rows_are_read_in_the_usual_ways(lender: Database) -> None:
    """One, some, all, in a loop, as dicts, with counts and columns."""
    async with borrowing(lender) as borrowed, borrowed.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(sql.SQL("select {} from generate_series(1, 6) as n").format(sql.Identifier("n")))
        assert await cursor.fetchone() == {"n": 1}
        assert await cursor.fetchmany(2) == [{"n": 2}, {"n": 3}]
        assert [row async for row in cursor] == [{"n": 4}, {"n": 5}, {"n": 6}]
        assert (cursor.rowcount, [column.name for column in cursor.description or []]) == (6, ["n"])
        assert await (await borrowed.execute("select 1")).fetchall() == [(1,)]


@pytest.mark.parametrize("statements", [[EFFECT, EFFECT], ["select pg_terminate_backend(pg_backend_pid())"]])
async def test_trouble_while_it_is_lent_is_no_outage(lender: Database, statements: list[str]) -> None:
    """DA-18. A constraint that was deferred, a connection that broke: tried again, and counted as an attempt."""
    with pytest.raises(RetryableError, match="Nothing of it was kept") as caught:
        await borrow(lender, *statements)
    assert type(caught.value) is RetryableError
    assert await effects(lender) == []


async def test_it_is_over_with_its_block(lender: Database) -> None:
    """What the borrower leaves running cannot write into the transaction of the next user."""
    async with borrowing(lender) as borrowed:
        cursor = borrowed.cursor()
    for late in (borrowed, cursor):
        with pytest.raises(FatalError, match="after its tool had ended"):
            await late.execute("select 1")


SESSION = (
    "select current_user::text, session_user = %s as login, current_setting('statement_timeout') as patience,"
    " current_setting('timezone') as zone, current_setting('search_path') as path,"
    " (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,"
    " to_regclass('pg_temp.mine') as temporary"
)


async def test_a_lent_transaction_locks_no_roll_up_before_its_commit(db: Database, run_id: UUID) -> None:
    """DA-29. Roll-up rows are shared by many runs: a tool that takes its time holds up none of them."""
    await claim(db, tool_claim(run_id))
    held = b"select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    async with db.transaction() as conn:
        async with lent(conn):
            pass
        assert (await ledger.commit(conn, done(run_id, 1))).outcome == "written"
        assert await (await conn.execute(held)).fetchone() == (0,)
    counted = await fetch(db, "select attempts_completed from agent_ops.agent_operation_metrics")
    assert counted == [{"attempts_completed": 1}]


async def test_a_connection_comes_back_clean(database_dsn: str) -> None:
    """Roles, settings, session locks and temporary tables of one user are not the next one's."""
    async with await Database.open(database_dsn, min_size=1, max_size=1) as db:
        login = (await fetch(db, "select session_user::text as name"))[0]["name"]
        before = (await fetch(db, SESSION, login))[0]
        async with db.transaction() as conn:
            async with lent(conn):
                pass  # what the facade would refuse is run past it
            for statement in (
                "create temp table mine ()",
                "select pg_advisory_lock(7)",
                "reset role",
                "set statement_timeout = 0; set timezone = 'Asia/Tokyo'; set search_path = pg_catalog",
                "set session authorization casework_policy_owner",
            ):
                await conn.execute(statement.encode())
        assert (await fetch(db, SESSION, login))[0] == before
        assert before["current_user"] == "casework_runtime"


async def test_a_statement_that_is_given_up_undoes_only_itself(lender: Database) -> None:
    """A tool that limits a statement's time by itself goes on with the next one."""
    async with borrowing(lender) as borrowed:
        await borrowed.execute("insert into public.effect values ('a')")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await borrowed.execute("select pg_sleep(60)")
        await borrowed.execute("insert into public.effect values ('b')")
    assert await effects(lender) == ["a", "b", "engine"]


async def test_blocks_and_statements_in_any_order(lender: Database) -> None:
    """What stands in a block goes with it; what stands before and behind stays."""
    async with borrowing(lender) as borrowed:
        await borrowed.execute("insert into public.effect values ('before')")
        async with borrowed.transaction():
            await borrowed.execute("insert into public.effect values ('kept')")
            with pytest.raises(psycopg.errors.UndefinedTable):
                await _block_that_fails(borrowed)
            await borrowed.execute("insert into public.effect values ('kept too')")
        with pytest.raises(psycopg.errors.UndefinedTable):
            await _block_that_fails(borrowed)
        await borrowed.execute("insert into public.effect values ('behind')")
    assert await effects(lender) == ["before", "behind", "engine", "kept", "kept too"]


async def test_a_transaction_that_is_not_used_costs_no_trip(lender: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-33. Lent to a Task that does nothing with it: nothing is sent. Around the first statement it is two trips."""
    async with lender.transaction() as conn:
        await conn.execute(b"select pg_current_xact_id()")
        trips: list[str] = []
        wait = conn.wait

        async def counted(*args: Any, **kwargs: Any) -> Any:
            trips.append("trip")
            return await wait(*args, **kwargs)

        monkeypatch.setattr(conn, "wait", counted)
        async with lent(conn, sure=False):
            pass
        with pytest.raises(ZeroDivisionError):
            await _fails(conn)
        assert trips == []
        async with lent(conn, sure=False) as borrowed:
            await borrowed.execute(EFFECT)
        statement_and_constraints = 2
        assert len(trips) <= 2 + statement_and_constraints
    assert await effects(lender) == ["made"]


async def _fails(conn: Connection) -> None:
    async with lent(conn, sure=False):
        raise ZeroDivisionError
