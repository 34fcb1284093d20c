"""`worker`, `api` and `migrate`: the servers' own commands, by settings or by the stack that runs in this folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

F = TypeVar("F", bound=Callable[..., Any])

app_option: Callable[[F], F] = click.option(
    "--app", "reference", metavar="MODULE:NAME", help="The application (default: CASEWORK_APP, else casework.toml)."
)


@click.command()
@app_option
def worker(reference: str | None) -> int:
    """Run a worker until SIGTERM or Ctrl-C; steps in flight get CASEWORK_GRACEFUL_STOP seconds to end."""
    from casework.app import load_app
    from casework.cli import stack
    from casework.durable.worker import check_models, run_worker

    _log_to_stderr()
    settings = stack.load()
    app = load_app(reference or settings.app.reference)
    check_models(app, settings)
    asyncio.run(run_worker(app, settings))
    return exits.OK


@click.command()
@app_option
@click.option("--host", help="Address to listen on (default: CASEWORK_API_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port (default: CASEWORK_API_PORT; 0: any free one).")
def api(reference: str | None, host: str | None, port: int | None) -> int:
    """Serve the HTTP API until SIGTERM or Ctrl-C; requests under way are answered first."""
    from casework.api import build
    from casework.app import load_app
    from casework.cli import stack
    from casework.cli.serving import serve

    _log_to_stderr()
    settings = stack.load()
    application = build(settings, load_app(reference or settings.app.reference))
    serve(application, host or settings.api.host, settings.api.port if port is None else port)
    return exits.OK


tables_option: Callable[[F], F] = click.option(
    "--tables",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="SQL for tables of your own, applied once behind the rest. May be given several times; they run in order.",
)


@click.command()
@tables_option
@json_option
def migrate(tables: tuple[Path, ...], as_json: bool) -> int:
    """Bring the database's tables up to date, as its owner. Does nothing where they are."""
    from casework.cli import stack
    from casework.store.migrate import migrate as run
    from casework.store.migrate import with_own

    done = asyncio.run(run(stack.load().database.owner_dsn(), migrations=with_own(tables)))
    if as_json:
        emit_json({"applied": done})
    else:
        click.echo(f"Applied: {', '.join(done)}." if done else "The tables are up to date.")
    return exits.OK


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # A failed attempt is told in one line by the activity itself; the SDK would add a traceback of its own.
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
