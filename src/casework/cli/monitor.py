"""`casework monitor`: the Monitors at the heads of processes, as a client of the API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

_VALUES = ("polling_interval", "sleep_time", "max_loops", "max_running_time")


@click.group()
def monitor() -> None:
    """Look at Monitors, configure and stop them, let them poll now."""


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
    """The Monitor of process NAME, with its newest rounds, and what it could not take in."""
    from casework.cli.http import Api
    from casework.cli.process_view import path_of, print_monitor

    with Api.find() as api:
        found = api.get(path_of("monitors", name))
    emit_json(found) if as_json else print_monitor(found)
    return exits.OK


@monitor.command()
@click.argument("monitor_class", metavar="CLASS")
@click.option("--polling-interval", metavar="DURATION", help="From poll to poll, ISO 8601 as in PT3M.")
@click.option("--sleep-time", metavar="DURATION", help="From wake to wake.")
@click.option("--max-loops", type=click.IntRange(min=1), help="Polls after which it ends.")
@click.option("--max-running-time", metavar="DURATION", help="Time after which it ends.")
@click.option("--clear", is_flag=True, help="Take back every value that was configured so.")
@json_option
def configure(monitor_class: str, *, max_loops: int | None, clear: bool, as_json: bool, **durations: str | None) -> int:
    """Configure the Monitors of a CLASS, before file and defaults; it holds from their next wake.

    What is not named stays as it is. The answer tells what is in force, and where each value comes from.
    """
    from casework.cli.durations import duration
    from casework.cli.http import Api
    from casework.cli.process_view import path_of, print_configuration

    body: dict[str, Any] = {
        name: duration(f"--{name.replace('_', '-')}", text) for name, text in durations.items() if text is not None
    }
    body |= {} if max_loops is None else {"max_loops": max_loops}
    if clear == bool(body):
        raise click.UsageError(
            "Name --polling-interval, --sleep-time, --max-loops or --max-running-time, or --clear alone."
        )
    with Api.find() as api:
        found = api.patch(path_of("monitors", "classes", quote(monitor_class, safe="")), body or dict.fromkeys(_VALUES))
    if as_json:
        emit_json(found)
        return exits.OK
    click.echo(f"Monitor {found['monitor_class']}, from its next wake:")
    print_configuration(found["configuration"])
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
