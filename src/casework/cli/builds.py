"""`casework builds`: the builds of the workers, which of them gets new runs, and which are still needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, table, when

if TYPE_CHECKING:
    from temporalio.client import Client

    from casework.durable.builds import Builds

Made = TypeVar("Made")
COLUMNS = {
    "name": "BUILD",
    "state": "STATE",
    "workers": "WORKERS",
    "open_runs": "OPEN RUNS",
    "staying": "STAY",
    "since": "CURRENT SINCE",
}
NONE = "No worker of queue {queue} ever had a build (CASEWORK_WORKER_BUILD): any worker takes any run."


@click.group()
def builds() -> None:
    """Builds of the workers side by side: show them, and say which of them gets new runs.

    A worker has a build where CASEWORK_WORKER_BUILD names one.
    """


@builds.command(name="list")
@json_option
def list_(as_json: bool) -> int:
    """The builds of the task queue: which is current, how many open runs each has, and how many of them stay with it.

    A build with the state `free` is needed by no open run, and its workers can be stopped.
    """
    from casework.durable.builds import look

    found = _on_queue(look)
    if as_json:
        emit_json(_plain(found))
        return exits.OK
    rows = [{**asdict(each), "since": when(_since(each.current_since))} for each in found.builds]
    table(rows, COLUMNS, NONE.format(queue=found.queue))
    if found.used and found.current is None:
        click.echo(f"No build is current: new runs go to workers without a build ({found.plain_workers} now).")
    elif found.plain_workers:
        click.echo(f"{found.plain_workers} at work without a build; they get no runs.")
    return exits.OK


@builds.command(name="make-current")
@click.argument("build", required=False)
@click.option("--unversioned", is_flag=True, help="No build: new runs go to workers without one.")
@json_option
def make_current(build: str | None, unversioned: bool, as_json: bool) -> int:
    """Give new runs to workers of BUILD, and the open runs that move on; to go back, name the build before.

    A worker of it must be at work. Runs that stay go on with the build that began them.
    """
    from casework.durable.builds import look
    from casework.durable.builds import make_current as make

    if (build is None) != unversioned:
        raise click.UsageError("Name a build, or give --unversioned.")

    async def change(client: Client, queue: str) -> Builds:
        await make(client, queue, build)
        return await look(client, queue)

    found = _on_queue(change)
    if as_json:
        emit_json(_plain(found))
    else:
        who = "workers without a build" if build is None else f"workers of build {build}"
        click.echo(f"New runs of queue {found.queue} go to {who}; so do open runs that move on.")
    return exits.OK


def _on_queue(ask: Callable[[Client, str], Awaitable[Made]]) -> Made:
    from casework.cli import stack
    from casework.durable.connection import connect

    settings = stack.load()

    async def asked() -> Made:
        return await ask(await connect(settings), settings.temporal.task_queue)

    return asyncio.run(asked())


def _since(at: object) -> str | None:
    return None if at is None else str(at)


def _plain(found: Builds) -> dict[str, object]:
    from casework.values import plain

    made: dict[str, object] = plain(asdict(found), "builds")
    return made
