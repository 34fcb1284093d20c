"""`casework dev`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from casework.cli.preparation import declare_schedules
from casework.cli.servers import tables_option
from casework.settings import Settings

if TYPE_CHECKING:
    from casework.cli.supervisor import Stack

AGAIN = "To apply what was applied again: casework get KIND NAME > again.yaml && casework apply -f again.yaml"


@click.command()
@click.option(
    "--app", "reference", metavar="MODULE:NAME", help="The application (default: CASEWORK_APP, casework.toml)."
)
@click.option("--workers", type=click.IntRange(0, 64), default=1, show_default=True, help="Worker processes.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the API (default: CASEWORK_API_PORT).")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for data, logs and the token (default: CASEWORK_HOME).",
)
@tables_option
def dev(reference: str | None, workers: int, port: int | None, home: Path | None, tables: tuple[Path, ...]) -> None:
    """Start everything on this machine: PostgreSQL, Temporal, workers and the API; stop it with Ctrl-C.

    Data is kept in the home folder from start to start. With CASEWORK_DATABASE_URL or TEMPORAL_ADDRESS set, the server
    named there is used and none is started. Where the port is busy another is
    chosen, and kept for the next start.
    """
    from casework.cli.supervisor import Stack

    settings = Settings.load()
    if port:
        settings = replace(settings, api=replace(settings.api, port=port))
    asyncio.run(_run(Stack(home or settings.app.home, settings, reference, tables), workers))


async def _run(stack: Stack, workers: int) -> None:
    """Start, watch and stop the stack; the first signal begins the stop, at whatever point the start is."""
    wanted_port = stack.settings.api.port
    working = asyncio.ensure_future(_start_and_watch(stack, workers, wanted_port))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        click.echo("Stopping.", err=True)
    finally:
        await stack.stop()
    click.echo("Stopped.", err=True)


async def _start_and_watch(stack: Stack, workers: int, wanted_port: int) -> None:
    stack.find_app()  # before the word that something starts
    click.echo(f"Starting the stack in {stack.home}", err=True)
    await stack.start(workers)
    if stack.settings.api.port != wanted_port:
        click.echo(f"Port {wanted_port} is busy; the API listens on {stack.settings.api.port}.", err=True)
    if stack.displaced:
        names = ", ".join(stack.displaced)
        click.echo(f"No longer in force, as the application has its own: {names}. {AGAIN}", err=True)
    for sentence in await declare_schedules(stack.find_app(), stack.settings):
        click.echo(sentence, err=True)
    click.echo("\n".join(f"{name:<11} {value}" for name, value in _facts(stack).items()))
    click.echo("Ready. Stop with Ctrl-C.")
    await stack.watch(lambda sentence: click.echo(sentence, err=True))


def _facts(stack: Stack) -> dict[str, str]:
    ours = stack.servers.facts()
    outside = "outside, as the environment names it"
    return {
        "API": stack.api_url,
        "Token": f"in {stack.home / 'token'} (principal 'local', all roles)",
        "PostgreSQL": ours.get("database_url", outside),
        "Temporal": ours.get("temporal_address") or f"{stack.temporal_address} ({outside})",
        "Workers": ", ".join(f"{worker.name} (process {worker.pid})" for worker in stack.workers) or "none",
        "Logs": f"{stack.home}/*/*.log",
    }
