"""`casework runs signal`: a signal on its way to a run."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.http import Api
from casework.cli.output import emit_json
from casework.errors import InputError
from casework.values import loads_once


def send(run_id: str, name: str, payload: str | None, signal_id: str | None, as_json: bool) -> int:
    """Send it, and tell that it was received.

    Raises:
        InputError: the payload is not JSON.
    """
    body: dict[str, Any] = {"payload": None if payload is None else _payload(payload)}
    if signal_id is not None:
        body["signal_id"] = signal_id
    with Api.find() as api:
        answer: Any = api.post(f"/v1/runs/{run_id}/signals/{quote(name, safe='')}", body).body
    told = f"Run {answer['run_id']}: the signal {answer['name']} was received (id {answer['signal_id']})."
    emit_json(answer) if as_json else click.echo(told)
    return exits.OK


def _payload(text: str) -> Any:
    try:
        return loads_once(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--payload {text!r:.100} is not JSON: {error}.", field="payload") from None
