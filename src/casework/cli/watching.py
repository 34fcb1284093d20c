"""Following a run: its events in order as they come, until it rests or ends."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.http import Api
from casework.cli.output import emit_json, facts, safe, when
from casework.errors import UnreachableError

PAUSE_S = 0.5
"""Pause between two looks, in seconds."""
PATIENCE_S = 30.0
"""How long the API may be away before following ends, in seconds."""

ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
RESTS = ENDED | {"AWAITING_REVIEW"}


def watch_run(api: Api, run_id: str, until: str, timeout: float | None, as_json: bool) -> int:
    """Print events until the run rests (or ends); 0, or 1 where it FAILED or the time was over."""
    stops = ENDED if until == "end" else RESTS
    deadline = None if timeout is None else time.monotonic() + timeout
    seq = 0
    while True:
        # The state is read before the events: what led to it is then surely among them.
        run = patiently(api, f"/v1/runs/{quote(run_id)}")
        seq = _print_events(api, run_id, seq, as_json)
        if run["status"] in stops:
            return _ended(run, as_json)
        if deadline is not None and time.monotonic() >= deadline:
            click.echo(
                f"Run {run_id} is still {run['status']} after {timeout:g} s. Watch on, or give more time.", err=True
            )
            return exits.FAILED
        time.sleep(PAUSE_S)


def patiently(api: Api, path: str, **query: Any) -> Any:
    """The JSON at `path`; an API that is away for a while is waited for.

    Raises:
        UnreachableError: it is away for longer.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return api.get(path, **query)
        except UnreachableError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_S)


def _print_events(api: Api, run_id: str, seq: int, as_json: bool) -> int:
    while True:
        page = patiently(api, f"/v1/runs/{quote(run_id)}/events", after=seq)
        for event in page["items"]:
            seq = event["seq"]
            emit_json(event) if as_json else click.echo(line_of(event))
        if not page["items"]:
            return seq


def line_of(event: dict[str, Any]) -> str:
    """An event as a line: when, what, where, and its data in words."""
    return f"{when(event['at'])}  {event['kind']}  {safe(event['path'])}  {facts(event.get('data'))}".rstrip()


def _ended(run: dict[str, Any], as_json: bool) -> int:
    if not as_json:
        outcome = f", outcome {run['outcome']}" if run.get("outcome") else ""
        failure = f": {run['failure']}" if run.get("failure") else ""
        click.echo(f"Run {run['run_id']} is {run['status']}{outcome}{failure}")
    return exits.FAILED if run["status"] == "FAILED" else exits.OK
