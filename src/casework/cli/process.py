"""`casework process`: the business processes of the application, as a client of the API."""

from __future__ import annotations

from typing import Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

_AUDIT_STATEMENT_S = 600.0
"""A check reads whole tables."""
_TIMEOUT = click.option("--timeout", type=click.FloatRange(min=0), help="Stop watching after so many seconds.")
_WATCH = click.option("--watch", is_flag=True, help="Go on telling what moves, until nothing does.")

_DECLARED = {"declared": True}


@click.group()
def process() -> None:
    """List, start, stop and schedule business processes."""


@process.command("list")
@_WATCH
@_TIMEOUT
@json_option
def list_(*, watch: bool, timeout: float | None, as_json: bool) -> int:
    """Processes, where their Monitors stand, and how many Transactions are at each.

    With --watch a line for each process that moved, until nothing is in a tray.
    """
    from casework.cli.http import Api
    from casework.cli.process_view import print_processes
    from casework.cli.process_watching import watch_processes

    with Api.find() as api:
        if watch:
            return watch_processes(api, None, timeout, as_json)
        found = api.get("/v1/processes")
    emit_json(found) if as_json else print_processes(found)
    return exits.OK


@process.command()
@click.argument("name")
@json_option
def status(name: str, as_json: bool) -> int:
    """One process: its line, its Monitor with the configuration in force, its schedule."""
    from casework.cli.http import Api
    from casework.cli.process_view import path_of, print_process

    with Api.find() as api:
        found = api.get(path_of("processes", name))
    emit_json(found) if as_json else print_process(found)
    return exits.OK


@process.command()
@click.argument("name")
@_WATCH
@_TIMEOUT
@json_option
def start(name: str, *, watch: bool, timeout: float | None, as_json: bool) -> int:
    """Start the Monitor of a process; one that runs is left as it is.

    With --watch what moves is told, until it has polled and nothing is in a tray of the process.
    """
    from casework.cli.http import Api
    from casework.cli.process_view import path_of, print_receipt
    from casework.cli.process_watching import watch_processes

    with Api.find() as api:
        receipt = api.post(path_of("processes", name, "start"), {}).body
        emit_json(receipt) if as_json else print_receipt(receipt)
        return watch_processes(api, name, timeout, as_json) if watch else exits.OK


@process.command()
@click.argument("name")
@json_option
def stop(name: str, as_json: bool) -> int:
    """Stop the Monitor of a process. What is in trays goes on; it stays stopped until it is started by hand."""
    from casework.cli.process_view import send

    return send("processes", name, "stop", as_json)


@process.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--declared", is_flag=True, help="As the application declares it; without a NAME all that declare one.")
@click.option("--every", metavar="DURATION", help="An interval, ISO 8601 as in PT10M.")
@click.option("--offset", metavar="DURATION", help="Shift of the interval.")
@click.option("--stagger", is_flag=True, help="Several processes: start them one after the other within --every.")
@click.option("--half-days", is_flag=True, help="Every twelve hours, for a Monitor that ends a minute before.")
@click.option("--cron", multiple=True, metavar="EXPRESSION", help="Five fields, or a name like @daily.")
@click.option("--zone", metavar="ZONE", help="IANA name of the zone of --cron (default: UTC).")
@click.option("--jitter", metavar="DURATION", help="Longest random delay of a start.")
@click.option("--overlap", metavar="POLICY", help="What a start does while the one before runs (default: skip).")
@click.option("--catch-up", metavar="DURATION", help="How late a start is still made (default: PT1H).")
@click.option("--remove", is_flag=True, help="Take the schedule away; what it has started goes on.")
@json_option
def schedule(names: tuple[str, ...], *, declared: bool, remove: bool, as_json: bool, **given: Any) -> int:
    """Let processes start by a schedule, instead of one that each may have.

    What is set here goes before what the application declares, until --declared brings that back.
    """
    from casework.cli.http import Api
    from casework.cli.process_view import declaring, path_of, print_receipt, schedules

    alone = [option for option, is_given in (("--remove", remove), ("--declared", declared)) if is_given]
    if alone and (alone[1:] or any(given.values())):
        raise click.UsageError(f"{alone[0]} takes no other option but --json. Leave the rest out.")
    if not names and not declared:
        raise click.UsageError("Name a process, or several.")
    bodies = {} if remove or declared else schedules(names, **given)
    made = []
    with Api.find() as api:
        for name in names or declaring(api):
            path = path_of("processes", name, "schedule")
            made.append(api.delete(path) if remove else api.post(path, bodies.get(name, _DECLARED)).body)
            if not as_json:
                print_receipt(made[-1])
    if as_json:
        emit_json({"items": made})
    elif not made:
        click.echo("No process declares a schedule.")
    return exits.OK


@process.command()
@click.option("--tenant", default="default", show_default=True, help="The tenant whose books they are.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many faults of each check are told; the rest is counted.",
)
@click.option(
    "--entities",
    multiple=True,
    metavar="SCHEMA.TABLE",
    help="A table of the project's entities: whether its rows went to the clones. May be repeated.",
)
@json_option
def audit(tenant: str, most: int, entities: tuple[str, ...], as_json: bool) -> int:
    """Whether the books of all Transactions balance, from PostgreSQL, all as they are at one instant.

    Stages against status, claims, steps, errors, clones, families, analytics, loop records. The exit code is 1 where
    something does not agree; each fault is told with its id, and with what to do.
    """
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.cli.process_books import print_books
    from casework.store.processes.audit import books
    from casework.store.roles import RUNTIME

    found = on_database(
        stack.load().database.runtime_dsn(),
        RUNTIME,
        lambda conn: books(conn, tenant, most, entities),
        statement_timeout_s=_AUDIT_STATEMENT_S,
    ).to_plain()
    emit_json(found) if as_json else print_books(found)
    return exits.OK if found["balanced"] else exits.FAILED
