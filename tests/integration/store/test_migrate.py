"""Migrations: from nothing to the committed schema, side by side, changed, split, failing, with few rights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from casework.errors import MigrationError, StoreUnavailableError
from casework.store.database import Database
from casework.store.migrate import Migration, migrate, ordered, pending, shipped, with_own
from casework.store.roles import ensure_roles
from tests.integration.store.catalog import SCHEMAS, schema_lines

SNAPSHOT = Path(__file__).parent / "schema.txt"
ALL = [migration.name for migration in shipped()]


def tables(conn: psycopg.Connection[tuple[str]], schemas: str = SCHEMAS) -> list[str]:
    found = conn.execute(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        f" where n.nspname in {schemas} and c.relkind = 'r'".encode()
    )
    return [row[0] for row in found]


async def test_sum_of_migrations_is_the_committed_schema(empty_database_dsn: str) -> None:
    """From an empty database, all files in order give the snapshot; a second run does nothing."""
    assert await migrate(empty_database_dsn) == ALL
    assert await migrate(empty_database_dsn) == []
    with psycopg.connect(empty_database_dsn) as conn:
        assert schema_lines(conn) == SNAPSHOT.read_text().splitlines()


async def test_migrators_side_by_side_apply_each_file_once(empty_database_dsn: str) -> None:
    """Several processes that start at once: one works, the others wait and find nothing to do."""
    done = await asyncio.gather(*(migrate(empty_database_dsn) for _ in range(4)))
    assert sorted(name for names in done for name in names) == ALL


async def test_changed_file_is_refused_by_name(database_dsn: str) -> None:
    """A file that was applied and then changed is an error that names it."""
    first, *others = shipped()
    changed = Migration(first.name, first.number, first.phase, first.sql + "\n-- changed")
    with pytest.raises(MigrationError, match=rf"{first.name} was changed after it was applied"):
        await migrate(database_dsn, migrations=[changed, *others])


async def test_a_projects_own_tables_come_behind_the_rest_and_once(empty_database_dsn: str, tmp_path: Path) -> None:
    """BP-3. Their guard is there already; a file is known by its name, and refused when it was changed."""
    file = tmp_path / "tables.sql"
    file.write_text(
        "create table public.payments (paid_for uuid); select process_ops.guard_entities('public.payments', 'paid_for')"
    )
    assert (await migrate(empty_database_dsn, migrations=with_own([file])))[-1] == "own/tables.sql"
    assert await migrate(empty_database_dsn, migrations=with_own([file])) == []
    assert await migrate(empty_database_dsn) == []
    file.write_text("create table public.others ()")
    with pytest.raises(MigrationError, match=r"own/tables\.sql was changed"):
        await migrate(empty_database_dsn, migrations=with_own([file]))
    with pytest.raises(MigrationError, match=r"Two files are named tables\.sql"):
        with_own([file, file])


def three() -> list[Migration]:
    return ordered(
        [
            ("9002_more.before.sql", "create table public.b ()"),
            ("9001_start.after.sql", "create table public.a_after ()"),
            ("9001_start.before.sql", "create table public.a ()"),
            ("9002_more.after.sql", "create table public.b_after ()"),
        ]
    )


async def test_before_phase_leaves_the_last_after_files(empty_database_dsn: str) -> None:
    """Before a deploy everything runs but what must wait until the old release is gone; after it, the rest."""
    before = await migrate(empty_database_dsn, "before", three())
    assert before == ["9001_start.before", "9001_start.after", "9002_more.before"]
    assert await migrate(empty_database_dsn, "after", three()) == ["9002_more.after"]


async def test_failing_file_leaves_nothing_and_names_itself(empty_database_dsn: str) -> None:
    """A file is one transaction: what it did before its fault is rolled back, and it can be mended and run again."""
    broken = ordered([("9001_x.before.sql", "create table public.half (); select 1 / 0")])
    with pytest.raises(MigrationError, match=r"9001_x.before failed and was rolled back: division by zero"):
        await migrate(empty_database_dsn, migrations=broken)
    mended = ordered([("9001_x.before.sql", "create table public.half ()")])
    assert await migrate(empty_database_dsn, migrations=mended) == ["9001_x.before"]


async def test_older_release_runs_on_a_newer_schema(database_dsn: str) -> None:
    """Rows of a newer release in the migrations table are left alone."""
    with psycopg.connect(database_dsn) as conn:
        conn.execute("insert into casework_meta.migrations values ('9999_new.before', 'x', now())")
    assert await migrate(database_dsn) == []


async def test_every_table_logs_whole_rows(database_dsn: str) -> None:
    """DA-43. Every table of runs and of Transactions has REPLICA IDENTITY FULL."""
    with psycopg.connect(database_dsn) as conn:
        rows = conn.execute(
            "select relname, relreplident from pg_class"
            " where relnamespace::regnamespace::text in ('agent_ops', 'process_ops') and relkind = 'r'"
        ).fetchall()
    assert len(rows) > 12
    assert {identity for _, identity in rows} == {"f"}


async def test_every_key_starts_with_the_tenant(database_dsn: str) -> None:
    """Row-level security can be switched on: each table has a tenant, default 'default', first in its primary key."""
    with psycopg.connect(database_dsn) as conn:
        for table in tables(conn, "('agent_ops', 'process_ops', 'agent_policy', 'casework_auth')"):
            first = conn.execute(
                "select a.attname, pg_get_expr(d.adbin, d.adrelid) from pg_index i"
                " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]"
                " join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum"
                " where i.indisprimary and i.indrelid = %s::regclass",
                (table,),
            ).fetchone()
            assert first == ("tenant", "'default'::text"), table


async def test_readiness_knows_what_is_missing(database_dsn: str, empty_database_dsn: str) -> None:
    """A migrated database lacks nothing; an empty one cannot be taken for ready."""
    async with await Database.open(database_dsn) as db, db.transaction() as conn:
        assert await pending(conn) == []
    async with await Database.open(empty_database_dsn) as db:
        with pytest.raises(StoreUnavailableError, match="Run `casework migrate`"):
            async with db.transaction() as conn:
                await pending(conn)


@pytest.fixture
def owner_dsn(empty_database_dsn: str) -> Iterator[str]:
    """A login without special rights that owns an empty database."""
    with psycopg.connect(empty_database_dsn, autocommit=True) as conn:
        name = f"owner_{uuid4().hex[:8]}"
        conn.execute(f"create role {name} login password 'pw'".encode())
        conn.execute(
            sql.SQL("alter database {} owner to {}").format(sql.Identifier(conn.info.dbname), sql.Identifier(name))
        )
        yield make_conninfo(empty_database_dsn, user=name, password="pw")
        conn.execute(sql.SQL("alter database {} owner to current_user").format(sql.Identifier(conn.info.dbname)))
        conn.execute(f"drop owned by {name}; drop role {name}".encode())


@pytest.fixture
def _roles_exist(migrated_template: str) -> None:
    """The server has the roles, from another database's migration."""


@pytest.mark.usefixtures("_roles_exist")
async def test_owner_without_the_roles_is_told_what_to_grant(owner_dsn: str) -> None:
    """A login that may not take the roles: the message is the statement that an administrator has to run."""
    with pytest.raises(MigrationError, match=r"grant casework_runtime to owner_\w+; then migrate again"):
        await migrate(owner_dsn)


@pytest.mark.usefixtures("_roles_exist")
async def test_owner_with_the_roles_migrates_and_works(owner_dsn: str, empty_database_dsn: str) -> None:
    """No superuser is needed: a login that owns the database and was granted the roles does all."""
    login = psycopg.conninfo.conninfo_to_dict(owner_dsn)["user"]
    with psycopg.connect(empty_database_dsn, autocommit=True) as conn:
        conn.execute(f"grant casework_runtime, casework_policy_owner to {login}".encode())
    assert await migrate(owner_dsn) == ALL
    async with await Database.open(owner_dsn) as db, db.transaction() as conn2:
        found = await (await conn2.execute("select current_user, count(*) from agent_ops.agent_runs")).fetchone()
    assert found == ("casework_runtime", 0)


async def test_login_that_may_create_roles_makes_and_takes_them(owner_dsn: str, empty_database_dsn: str) -> None:
    """CREATEROLE is enough to make the roles, on every supported version; the second time changes nothing."""
    login = psycopg.conninfo.conninfo_to_dict(owner_dsn)["user"]
    role = f"made_{uuid4().hex[:8]}"
    with psycopg.connect(empty_database_dsn, autocommit=True) as admin:
        admin.execute(f"alter role {login} createrole".encode())
        async with await AsyncConnection.connect(owner_dsn, autocommit=True) as conn:
            await ensure_roles(conn, [role])
            await ensure_roles(conn, [role])
            await conn.execute(f"set role {role}".encode())
        admin.execute(f"drop owned by {role}; drop role {role}".encode())


async def test_login_that_may_not_create_roles_is_told(owner_dsn: str) -> None:
    """Without the right, the message has both statements."""
    async with await AsyncConnection.connect(owner_dsn, autocommit=True) as conn:
        with pytest.raises(MigrationError, match=r"create role absent_role nologin; grant absent_role to owner_\w+"):
            await ensure_roles(conn, ["absent_role"])


async def test_unreachable_server_is_said_without_the_password() -> None:
    """The message names the place and hides the secret."""
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1/none") as caught:
        await migrate("postgresql://me:s3cret@127.0.0.1:1/none")
    assert "s3cret" not in str(caught.value)
