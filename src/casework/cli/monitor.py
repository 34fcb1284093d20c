"""`casework monitor`: the Monitors at the heads of processes, as a client of the API."""

from __future__ import annotations

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option


@click.group()
def monitor() -> None:
    """Look at Monitors, stop them, let them poll now."""


@monitor.command("list")
@json_option
def list_(as_json: bool) -> int:
    """Monitors, each with its configuration in force and where each value comes from."""
    from casework.cli.http import Api
    from casework.cli.process_view import print_monitors

    with Api.find() as api:
        found = api.get("/v1/monitors")
    emit_json(found) if as_json else print_monitors(found["items"])
    return exits.OK


@monitor.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> int:
    """The Monitor of process NAME, with its newest rounds."""
    from casework.cli.http import Api
    from casework.cli.process_view import path_of, print_monitor

    with Api.find() as api:
        found = api.get(path_of("monitors", name))
    emit_json(found) if as_json else print_monitor(found)
    return exits.OK


@monitor.command()
@click.argument("name")
@json_option
def stop(name: str, as_json: bool) -> int:
    """Stop the Monitor of process NAME, at once or behind the poll that it is in."""
    from casework.cli.process_view import send

    return send("monitors", name, "stop", as_json)


@monitor.command()
@click.argument("name")
@json_option
def poll(name: str, as_json: bool) -> int:
    """Let the Monitor of process NAME poll now."""
    from casework.cli.process_view import send

    return send("monitors", name, "poll", as_json)
