"""`casework engine`: which Temporal the runs of this database are in, and moving to another on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from casework.store.database import Connection
    from casework.store.engines import EngineRow


@click.group()
def engine() -> None:
    """Show and accept the Temporal namespace that the runs of this database are in."""


@engine.command()
@json_option
def show(as_json: bool) -> int:
    """The engine that the database's runs are in, and the one that the settings name; exit code 1 if they differ."""
    from casework.durable.engines import REMEDY, foreign
    from casework.store import engines

    kept, here = _with_engine(owner=False, work=lambda conn, _: engines.kept(conn))
    wrong = foreign(kept, here) if kept else None
    if as_json:
        emit_json({"kept": _plain(kept), "here": _plain(here), "same": wrong is None})
    elif wrong:
        click.echo(f"{wrong} {REMEDY}")
    else:
        click.echo(f"{here.shown()}." if kept else f"None is kept yet; the first worker keeps {here.shown()}.")
    return exits.FAILED if wrong else exits.OK


@engine.command()
@json_option
def accept(as_json: bool) -> int:
    """Take the engine that the settings name as the one of this database, as the database's owner.

    For a deliberate move, or where the data of the old engine is lost. Open runs that are not in this engine are closed
    FAILED by the next sweep, however many they are; what is PENDING starts here.
    """
    from casework.store import engines

    async def work(conn: Connection, here: EngineRow) -> EngineRow | None:
        before = await engines.kept(conn)
        await engines.accept(conn, here)
        return before

    before, here = _with_engine(owner=True, work=work)
    if as_json:
        emit_json({"before": _plain(before), "kept": _plain(here)})
    else:
        click.echo(f"The runs of this database are in {here.shown()}; before: {before.shown() if before else 'none'}.")
    return exits.OK


def _plain(found: EngineRow | None) -> dict[str, object] | None:
    from casework.values import plain

    kept: dict[str, object] | None = None if found is None else plain(asdict(found), "engine")
    return kept


def _with_engine(
    *, owner: bool, work: Callable[[Connection, EngineRow], Awaitable[EngineRow | None]]
) -> tuple[EngineRow | None, EngineRow]:
    """What `work` finds in the database, and the engine of the settings."""
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.durable.connection import connect
    from casework.durable.engines import engine_of
    from casework.store.roles import RUNTIME

    settings = stack.load()
    url = settings.database.owner_dsn() if owner else settings.database.runtime_dsn()

    async def here() -> EngineRow:
        return await engine_of(await connect(settings))

    found = asyncio.run(here())
    return on_database(url, None if owner else RUNTIME, lambda conn: work(conn, found)), found
