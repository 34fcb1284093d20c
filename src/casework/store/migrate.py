"""Migrations: forward-only SQL files, each applied once, in order, in its own database transaction.

`NNNN_title.before.sql` runs before the new release is deployed and must suit the old one; `NNNN_title.after.sql`
runs when the old one is gone. One migrator works at a time, under an advisory lock; others wait and find nothing to
do. What was applied is kept with its checksum in `casework_meta.migrations`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import AsyncConnection

from casework.errors import CaseworkError, MigrationError
from casework.store.connection import Connection
from casework.store.dsn import cannot_open, options, parsed
from casework.store.faults import translate
from casework.store.roles import ensure_roles

Phase = Literal["before", "after", "all"]
OLDEST_SERVER = 150000
_LOCK = 0x6361_7365_776F_726B  # "casework"
_FILE = re.compile(r"^(\d{4})_(\w+)\.(before|after)\.sql$")
_WAIT_FOR_LOCK = "60s"
_CONNECT_S = 10
_SILENCE_S = 60
"""A migration's statement may take long; the network may not be silent for longer than this."""
_META = """
create schema if not exists casework_meta;
create table if not exists casework_meta.migrations (
    name       text        primary key,
    checksum   text        not null,
    applied_at timestamptz not null default clock_timestamp()
);
"""
_META_RIGHTS = """
grant usage on schema casework_meta to casework_runtime;
grant select on casework_meta.migrations to casework_runtime;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file. `name` is the file's without `.sql`; order is number, then before, then after."""

    name: str
    number: int
    phase: Literal["before", "after"]
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this release, in order.

    Raises:
        MigrationError: a file's name does not follow the rule, or a number is used twice.
    """
    folder = resources.files("casework.store") / "migrations"
    files = [
        (entry.name, entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".sql")
    ]
    return ordered(files)


def with_own(files: Sequence[Path]) -> list[Migration]:
    """The shipped migrations and, behind them, those of a project: SQL files for tables of its own, as they are given.

    Each is known by its file's name, is applied once, and must not change afterwards.

    Raises:
        MigrationError: a file cannot be read, or two have one name.
    """
    made = shipped()
    for number, file in enumerate(files, start=made[-1].number + 1):
        name = f"own/{file.name}"
        if any(each.name == name for each in made):
            raise MigrationError(f"Two files are named {file.name}. Rename one: each is known by its name.")
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MigrationError(f"{file} cannot be read: {error}. Correct it.") from None
        made.append(Migration(name, number, "before", text))
    return made


def ordered(files: Sequence[tuple[str, str]]) -> list[Migration]:
    """Files (name, text) as migrations in order.

    Raises:
        MigrationError: a file's name does not follow the rule, or a number is used twice.
    """
    made = [_migration(name, text) for name, text in files]
    made.sort(key=lambda migration: (migration.number, migration.phase == "after"))
    titles: dict[int, str] = {}
    for migration in made:
        title = migration.name.rpartition(".")[0]
        if titles.setdefault(migration.number, title) != title:
            raise MigrationError(
                f"Migrations {titles[migration.number]} and {title} have one number. Renumber the newer."
            )
    return made


def _migration(name: str, text: str) -> Migration:
    match = _FILE.match(name)
    if match is None:
        raise MigrationError(f"{name} is no migration's name. Call it NNNN_title.before.sql or NNNN_title.after.sql.")
    return Migration(name.removesuffix(".sql"), int(match[1]), "before" if match[3] == "before" else "after", text)


async def migrate(admin_dsn: str, phase: Phase = "all", migrations: Sequence[Migration] | None = None) -> list[str]:
    """Make the roles, apply what is missing, and return the names of what was applied now.

    `before` stops in front of the last release's after files; `all` and `after` apply everything. `migrations` None
    are the shipped ones; `with_own` gives these with a project's own.

    Raises:
        SettingsError: `admin_dsn` does not parse.
        MigrationError: a file was changed after it was applied, the login lacks a right, the server is too old, or a
            statement failed; nothing of that file was applied.
        StoreUnavailableError: the server cannot be reached, or another migrator did not end within a minute.
    """
    known = shipped() if migrations is None else list(migrations)
    async with _session(admin_dsn) as conn:
        await _meta(conn)
        due = _due(known, await _applied(conn), phase)
        for migration in due:
            await _apply(conn, migration)
    return [migration.name for migration in due]


@asynccontextmanager
async def _session(dsn: str) -> AsyncIterator[Connection]:
    """A connection in autocommit that holds the migrator's lock."""
    parts = parsed(dsn)
    kwargs = options(parts, "casework migrate", _CONNECT_S, _SILENCE_S)
    try:
        conn: Connection = await AsyncConnection.connect(dsn, autocommit=True, **kwargs)
    except psycopg.Error as error:
        raise cannot_open(error, parts) from error
    async with conn:
        try:
            _check_version(conn.info.server_version)
            await conn.execute("select set_config('lock_timeout', %s, false)", (_WAIT_FOR_LOCK,))
            await conn.execute("select pg_advisory_lock(%s)", (_LOCK,))
            yield conn
        except psycopg.Error as error:
            raise _told(error) from error


def _check_version(version: int) -> None:
    if version < OLDEST_SERVER:
        raise MigrationError(f"The server is PostgreSQL {version // 10000}. Use {OLDEST_SERVER // 10000} or newer.")


def _told(error: psycopg.Error) -> CaseworkError:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return MigrationError(
            f"The login lacks a right: {str(error).strip()}. "
            "Migrate with the login that owns the database and its schemas."
        )
    return translate(error)


async def _meta(conn: Connection) -> None:
    await ensure_roles(conn)
    async with conn.transaction():
        await conn.execute(_META)
        await conn.execute(_META_RIGHTS.encode())


async def _applied(conn: Connection) -> dict[str, str]:
    found = await conn.execute("select name, checksum from casework_meta.migrations")
    return dict(await found.fetchall())


def _due(known: Sequence[Migration], applied: dict[str, str], phase: Phase) -> list[Migration]:
    """What is to be applied now. Rows that this release does not know are a newer release's; they stay."""
    for migration in known:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationError(
                f"Migration {migration.name} was changed after it was applied to this database. "
                "Restore the file and put the change into a new migration."
            )
    due = [migration for migration in known if migration.name not in applied]
    while phase == "before" and due and due[-1].phase == "after":
        due.pop()
    return due


async def _apply(conn: Connection, migration: Migration) -> None:
    row = (migration.name, migration.checksum)
    try:
        async with conn.transaction():
            await conn.execute(migration.sql.encode())
            await conn.execute("insert into casework_meta.migrations (name, checksum) values (%s, %s)", row)
    except psycopg.errors.InsufficientPrivilege:
        raise
    except psycopg.Error as error:
        raise MigrationError(f"Migration {migration.name} failed and was rolled back: {str(error).strip()}") from error


async def pending(conn: AsyncConnection[Any]) -> list[str]:
    """Migrations of this release that the database lacks (for readiness).

    Raises:
        StoreUnavailableError: through `Database.transaction`, where nothing was migrated yet.
    """
    applied = await _applied(conn)
    return [migration.name for migration in shipped() if migration.name not in applied]
