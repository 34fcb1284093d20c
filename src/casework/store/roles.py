"""The database roles, made once for a server and granted to the login that migrates.

`casework_runtime` reads and writes the rows of runs, deletes none, and only reads the policy; `casework_policy_owner`
writes the policy; `casework_retention` deletes whole runs that have ended. None has a login of its own: an installation
grants them to its logins. Roles belong to the server and not
to a database, so another database's migration may make them at the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import AsyncConnection, sql

from casework.errors import MigrationError

RUNTIME = "casework_runtime"
POLICY_OWNER = "casework_policy_owner"
RETENTION = "casework_retention"
ALL = (RUNTIME, POLICY_OWNER, RETENTION)
_ONLY_MADE = frozenset({RETENTION})
"""The migrating login owns the tables, so it needs no such right; it need not be able to give it either."""


async def ensure_roles(conn: AsyncConnection[tuple[object, ...]], roles: Sequence[str] = ALL) -> None:
    """Make the roles where they are absent, and let the present login take them. `conn` is in autocommit.

    Raises:
        MigrationError: the login may not do it; says what an administrator has to run.
    """
    for role in roles:
        if not await _exists(conn, role):
            await _create(conn, role)
        if role not in _ONLY_MADE and not await _may_take(conn, role):
            await _grant(conn, role)


async def _exists(conn: AsyncConnection[tuple[object, ...]], role: str) -> bool:
    found = await conn.execute("select from pg_roles where rolname = %s", (role,))
    return found.rowcount > 0


async def _create(conn: AsyncConnection[tuple[object, ...]], role: str) -> None:
    try:
        await conn.execute(sql.SQL("create role {} nologin").format(sql.Identifier(role)))
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        return  # another migration made it in this moment
    except psycopg.errors.InsufficientPrivilege as error:
        raise await _needs_help(conn, role, f"create role {role} nologin; ") from error


async def _may_take(conn: AsyncConnection[tuple[object, ...]], role: str) -> bool:
    """Whether `SET ROLE` works: the one question whose answer is the same in every version."""
    try:
        await conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    except psycopg.errors.InsufficientPrivilege:
        return False
    await conn.execute("reset role")
    return True


async def _grant(conn: AsyncConnection[tuple[object, ...]], role: str) -> None:
    try:
        await conn.execute(sql.SQL("grant {} to current_user").format(sql.Identifier(role)))
    except psycopg.errors.InternalError:
        pass  # another migration changed the same membership in this moment; the check below tells
    except psycopg.Error as error:
        raise await _needs_help(conn, role) from error
    if not await _may_take(conn, role):
        raise await _needs_help(conn, role)


async def _needs_help(conn: AsyncConnection[tuple[object, ...]], role: str, first: str = "") -> MigrationError:
    row = await (await conn.execute("select quote_ident(current_user)")).fetchone()
    login = row[0] if row else "LOGIN"
    return MigrationError(
        f"Login {login} may not make or take the role {role}. Let an administrator of the server run: "
        f"{first}grant {role} to {login}; then migrate again."
    )
