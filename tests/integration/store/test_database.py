"""The pool: roles, values in both directions, errors in our words, and healing after the server was away."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Json, Jsonb, set_json_loads

from casework.errors import ConflictError, FatalError, StoreUnavailableError
from casework.store import queries, runs
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.values import MAX_DEPTH, clean, loads
from tests.integration.store.cases import TENANT, execute, fetch, new_run

DEADLINE_S = 20.0
LIVE = "select pg_sleep(0.05) from pg_stat_activity where pid = %s"


async def test_connection_is_set_up(db: Database, admin_db: Database) -> None:
    """A connection has the role, the time-outs, UTC and a name for the server's list of sessions."""
    shown = (
        await fetch(
            db,
            "select current_user as role, current_setting('statement_timeout') as patience,"
            " current_setting('idle_in_transaction_session_timeout') as idle, current_setting('timezone') as zone,"
            " current_setting('application_name') as name",
        )
    )[0]
    assert shown == {"role": "casework_runtime", "patience": "10s", "idle": "5s", "zone": "UTC", "name": "casework"}
    assert (await fetch(admin_db, "select current_user = session_user as own"))[0] == {"own": True}


async def test_json_keeps_every_digit(db: Database) -> None:
    """Decimals and large integers go through json and jsonb with all their digits, and never become floats."""
    values: list[Any] = [
        Decimal("0.10"),
        Decimal("12345678901234567890.123456789012345678901234567890"),
        2**200,
        {"a": [1, Decimal("1.10"), None, True, {"b": "\U0001f600"}]},
        "",
        [],
        None,
    ]
    async with db.transaction() as conn:
        for value in values:
            row = await (await conn.execute(b"select %s, %s", (Json(value), Jsonb(value)))).fetchone()
            assert row == (value, value)
            assert str(row) == str((value, value))


TEXTS = st.text(st.characters(codec=None), max_size=8)
NUMBERS = st.one_of(
    st.integers(), st.decimals(places=6), st.decimals(), st.just(Decimal("-0.0")), st.just(Decimal("1E+400"))
)
LEAVES = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(JSON, min_size=1, max_size=20))
def test_any_value_is_stored_and_read_as_its_clean_form(database_dsn: str, values: list[Any]) -> None:
    """Whatever text, number or nesting a tool returns, the row takes it and gives back its clean form."""

    async def through() -> list[Any]:
        found = []
        async with await psycopg.AsyncConnection.connect(database_dsn) as conn:
            set_json_loads(loads, conn)
            for value in values:
                params = queries.Writing().json(value=value)
                row = await (await conn.execute(b"select %(value)s::jsonb", params)).fetchone()
                assert row is not None
                found.append(row[0])
        return found

    assert asyncio.run(through()) == [clean(value).value for value in values]


async def test_times_are_utc_instants(db: Database) -> None:
    """An aware time in any zone comes back as the same instant, in UTC, to the microsecond."""
    async with db.transaction() as conn:
        row = await (await conn.execute(b"select '2026-03-01T10:00:00.123456+01:00'::timestamptz")).fetchone()
    assert row is not None
    assert row[0] == datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC)
    assert row[0].utcoffset().total_seconds() == 0


async def test_request_with_everything_odd_in_it(db: Database) -> None:
    """NUL, NaN, deep nesting, huge numbers: stored by the rule, counted on the row, nothing lost."""
    deep: Any = "bottom"
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    request = {
        "nul\x00": "\x00",
        "nan": float("nan"),
        "inf": Decimal("Infinity"),
        "deep": deep,
        "huge": 10**300,
        "long": Decimal("1E-40"),
        "enormous": 1 << 20_000,
        "tiny": Decimal("1E-20000"),
        "text": "x" * 100_000,
    }
    run_id = uuid4()
    async with db.transaction() as conn:
        row, _ = await runs.create_pending(conn, new_run(run_id, request=request, user="Zo\u00eb \u202e"))
    assert row.cleaned == 6
    assert row.request == {
        **{k: v for k, v in request.items() if k != "nul\x00"},
        "nul\u2400": "\u2400",
        "nan": "NaN",
        "inf": "Infinity",
        "enormous": hex(1 << 20_000),
        "tiny": "1E-20000",
    }
    assert row.user_id == "Zo\u00eb \u202e"


async def test_broken_rule_names_row_and_constraint(db: Database) -> None:
    """A constraint is a ConflictError that names query, table and constraint; it is not retryable."""
    with pytest.raises(ConflictError, match=r"runs\.create_pending, agent_runs, agent_runs_turn_limit_check") as caught:
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(uuid4(), turn_limit=0))
    assert not caught.value.retryable


@pytest.mark.parametrize("changes", [{"turn_limit": 2**31}, {"workflow_version": -(2**63) - 1}])
async def test_refused_value_names_query_and_value(db: Database, changes: dict[str, Any]) -> None:
    """A number that no column holds is a FatalError: trying again would not help."""
    with pytest.raises(FatalError, match=r"runs\.create_pending.*out of range") as caught:
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(uuid4(), **changes))
    assert not caught.value.retryable


async def test_too_large_for_the_server_is_not_tried_again(db: Database) -> None:
    """PostgreSQL calls "too complex" an operational error, as a lost connection; it would be so again: fatal."""
    with pytest.raises(FatalError, match="54001") as caught:
        await execute(db, "select repeat('[', 1000000)::json")
    assert not caught.value.retryable


async def test_statement_that_takes_too_long_is_ended(database_dsn: str) -> None:
    """No connection is held long: a statement over its time-out ends, and the operation may be tried again."""
    async with await Database.open(database_dsn, statement_timeout_s=0.2) as db:
        with pytest.raises(StoreUnavailableError, match="57014"):
            await execute(db, "select pg_sleep(30)")
        await db.ping()


async def test_idle_transaction_is_ended_by_the_server(database_dsn: str, admin_db: Database) -> None:
    """A transaction that waits for something outside is cut off: nothing may be held across a call or a wait."""
    async with await Database.open(database_dsn, statement_timeout_s=0.1) as db:

        async def idle() -> None:
            async with db.transaction() as conn:
                await conn.execute(b"select 1")
                async with asyncio.timeout(DEADLINE_S):
                    while await fetch(admin_db, LIVE, conn.info.backend_pid):
                        pass
                await conn.execute(b"select 1")

        with pytest.raises(StoreUnavailableError):
            await idle()
        await db.ping()


async def test_busy_pool_says_so(database_dsn: str) -> None:
    """Where no connection becomes free in time, the error says what to look at."""
    async with await Database.open(database_dsn, max_size=1, wait_s=0.2) as db, db.transaction():
        with pytest.raises(StoreUnavailableError, match="pool is large enough"):
            await db.ping()


async def test_closed_pool_says_so(database_dsn: str) -> None:
    """After close every use is an error in our words."""
    db = await Database.open(database_dsn)
    await db.close()
    with pytest.raises(StoreUnavailableError):
        await db.ping()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": "1"}, "Check CASEWORK_DATABASE_URL"),
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"user": "nobody_at_all", "password": "s3cret"}, "nobody_at_all"),
    ],
)
async def test_open_says_at_once_why_it_cannot(database_dsn: str, change: dict[str, str], said: str) -> None:
    """Opening fails in seconds with place and reason, without the secret."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=said) as caught:
        await Database.open(make_conninfo(database_dsn, **change))
    assert time.monotonic() - began < DEADLINE_S
    assert "s3cret" not in str(caught.value)


async def test_open_in_an_absent_role_says_migrate(database_dsn: str) -> None:
    """A server that was never migrated has no role: the message says what to run."""
    with pytest.raises(StoreUnavailableError, match="casework migrate"):
        await Database.open(database_dsn, role="role_that_is_not_there")


async def test_login_of_its_own_with_the_runtime_role(database_dsn: str) -> None:
    """An installation's login works once the role is granted to it, and is told what is missing before."""
    login = f"app_{uuid4().hex[:8]}"
    dsn = make_conninfo(database_dsn, user=login, password="pw")
    with psycopg.connect(database_dsn, autocommit=True) as admin:
        admin.execute(f"create role {login} login password 'pw'".encode())
        with pytest.raises(StoreUnavailableError, match="grant casework_runtime to LOGIN"):
            await Database.open(dsn)
        admin.execute(f"grant casework_runtime to {login}".encode())
        async with await Database.open(dsn) as db, db.transaction() as conn:
            await runs.create_pending(conn, new_run(uuid4()))
        with pytest.raises(StoreUnavailableError, match="permission denied"):
            await Database.open(dsn, role="casework_policy_owner")
        admin.execute(f"drop role {login}".encode())


async def test_unmigrated_database_says_migrate(empty_database_dsn: str, migrated_template: str) -> None:
    """Without the tables the first use says what to run."""
    async with await Database.open(empty_database_dsn) as db:
        with pytest.raises(StoreUnavailableError, match="casework migrate"):
            async with db.transaction() as conn:
                await runs.get(conn, TENANT, uuid4())


async def test_callers_own_error_passes_through(db: Database) -> None:
    """What the block itself raises is not translated, and rolls back."""
    run_id = uuid4()

    async def refused() -> None:
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(run_id))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await refused()
    async with db.transaction() as conn:
        assert await runs.get(conn, TENANT, run_id) is None


async def test_cancelled_transaction_gives_its_connection_back(database_dsn: str) -> None:
    """Cancellation in mid-statement leaves the pool whole."""
    async with await Database.open(database_dsn, max_size=1) as db:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(execute(db, "select pg_sleep(30)"), 0.2)
            await db.ping()


async def test_cancelled_statement_keeps_its_session(database_dsn: str) -> None:
    """The server that answers is asked to stop, and the session lives on: nobody has to connect again."""
    async with await Database.open(database_dsn, max_size=1) as db:
        before = await fetch(db, "select pg_backend_pid() as pid")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(execute(db, "select pg_sleep(30)"), 0.2)
        assert await fetch(db, "select pg_backend_pid() as pid") == before


async def test_server_that_takes_no_writes_is_left(database_dsn: str) -> None:
    """DA-18. A server that became read-only, as the old one after a failover: no session stays there."""
    async with await Database.open(database_dsn, max_size=2) as db:
        before = await fetch(db, "select pg_backend_pid() as pid")

        async def write() -> None:
            async with db.transaction() as conn:
                await conn.execute(b"set transaction read only")
                await runs.create_pending(conn, new_run(uuid4()))

        with pytest.raises(StoreUnavailableError, match="25006"):
            await write()
        assert await fetch(db, "select pg_backend_pid() as pid") != before


async def test_sessions_killed_under_the_pool(db: Database, database_dsn: str) -> None:
    """All idle connections die at once: the next use has a new one, without an error."""
    await asyncio.gather(*(execute(db, "select pg_sleep(0.05)") for _ in range(8)))
    with psycopg.connect(database_dsn, autocommit=True) as conn:
        conn.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = 'casework'"
        )
    began = time.monotonic()
    await asyncio.gather(*(db.ping() for _ in range(8)))
    assert time.monotonic() - began < 5


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[LocalPostgres]:
    with LocalPostgres(tmp_path / "server", options={"fsync": "off"}) as server:
        yield server


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_pool_heals_after_a_restart_of_the_server(own_server: LocalPostgres, how: signal.Signals) -> None:
    """The server goes away, by a fast shutdown or a kill, and comes back: retryable errors, then all is well."""
    async with await Database.open(own_server.dsn, role=None, max_size=6, wait_s=1) as db:
        await asyncio.gather(*(execute(db, "select pg_sleep(0.05)") for _ in range(6)))
        assert own_server.pid is not None
        os.kill(own_server.pid, how)
        with pytest.raises(StoreUnavailableError) as caught:
            await _until_it_fails(db)
        assert caught.value.retryable
        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.start)
        began = time.monotonic()
        await _until_it_works(db)
        assert time.monotonic() - began < 10
        await asyncio.gather(*(db.ping() for _ in range(6)))


async def _until_it_fails(db: Database) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            await db.ping()


async def _until_it_works(db: Database) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await db.ping()
            except StoreUnavailableError:
                continue
