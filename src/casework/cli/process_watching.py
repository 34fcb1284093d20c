"""Following processes: a line for each that moved, until nothing does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from casework.cli import exits
from casework.cli.http import Api
from casework.cli.output import emit_json, safe
from casework.cli.process_view import counts, path_of, state
from casework.cli.watching import PAUSE_S, patiently


def watch_processes(api: Api, name: str | None, timeout: float | None, as_json: bool) -> int:
    """Tell what moves at process `name`, or at all; 0 when nothing is in a tray, 1 where the time was over.

    A Monitor that runs and has not polled yet is waited for.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    told: dict[str, str] = {}
    while True:
        found = _look(api, name)
        for each in found:
            line = _line(each)
            if told.get(each["name"]) != line:
                told[each["name"]] = line
                emit_json(each) if as_json else click.echo(line)
        if not any(_moves(each) for each in found):
            return exits.OK
        if deadline is not None and time.monotonic() >= deadline:
            click.echo(f"Still at work after {timeout:g} s. Watch on, or give more time.", err=True)
            return exits.FAILED
        time.sleep(PAUSE_S)


def _look(api: Api, name: str | None) -> list[Any]:
    if name is not None:
        return [patiently(api, path_of("processes", name))]
    items: list[Any] = patiently(api, "/v1/processes")["items"]
    return items


def _moves(process: Mapping[str, Any]) -> bool:
    monitor = process["monitor"]
    polled = monitor["state"] != "running" or monitor["completed_loops"] > 0
    return not polled or any(each["claimed"] for each in process["counts"])


def _line(process: Mapping[str, Any]) -> str:
    monitor = process["monitor"]
    at_it = counts(process["counts"]) or "nothing at it"
    return f"{safe(process['name'])}: {state(monitor)}, {monitor['completed_loops']} polls; {at_it}"
