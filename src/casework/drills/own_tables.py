"""Tables that an application's transactional tools write: made once, as their owner, and counted from outside."""

from __future__ import annotations

import psycopg

from casework.drills.promises import BrokenOffError
from casework.rehearsal import OwnTables


async def prepare(tables: OwnTables, admin_dsn: str) -> None:
    """Run the file that makes them.

    Raises:
        BrokenOffError: the database refuses it.
    """
    try:
        async with await psycopg.AsyncConnection.connect(admin_dsn) as conn:
            await conn.execute(tables.prepare.read_bytes())
    except (psycopg.Error, OSError) as error:
        raise BrokenOffError(f"{tables.prepare} could not be run as the database's owner: {error}") from error


async def effects(tables: OwnTables, admin_dsn: str) -> dict[str, int]:
    """How many effects the call of each key has had.

    Raises:
        BrokenOffError: the database refuses a query, or its rows are no keys with numbers.
    """
    found: dict[str, int] = {}
    for tool, query in tables.effects.items():
        try:
            async with await psycopg.AsyncConnection.connect(admin_dsn) as conn:
                rows = await (await conn.execute(query.encode())).fetchall()
            found.update({str(key): int(number) for key, number in rows})
        except (psycopg.Error, ValueError, TypeError) as error:
            raise BrokenOffError(f"The effects of {tool} could not be counted: {error}") from error
    return found
