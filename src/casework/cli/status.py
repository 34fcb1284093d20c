"""`casework status`: the whole installation on one screen, asked of the servers themselves, as the API may be down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from casework.cli.status_lines import Line


@click.command()
@json_option
def status(as_json: bool) -> int:
    """Database, Temporal, workers, API, sweep, and what is open: fine, waiting as intended, or broken with the remedy.

    It asks the servers themselves and needs no token. The exit code is 0 only if nothing is broken; what waits for a
    person, is tried again or failed at a tool is told and is no fault of the installation.
    """
    from casework.cli import stack
    from casework.cli.status_lines import BROKEN
    from casework.cli.status_look import look
    from casework.settings import Settings

    settings = Settings.load()
    lines = asyncio.run(look(stack.joined(settings), settings.api.url or stack.find(settings).api_url))
    broken = [line for line in lines if line.state == BROKEN]
    if as_json:
        emit_json({"ok": not broken, "lines": [line.plain() for line in lines]})
    else:
        for line in lines:
            click.echo(line.shown())
        click.echo(_verdict(lines))
    return exits.FAILED if broken else exits.OK


def _verdict(lines: Sequence[Line]) -> str:
    from casework.cli.status_lines import BROKEN, LOOK

    for state, said in ((BROKEN, "Broken"), (LOOK, "Nothing is broken; to be looked at")):
        if parts := [line.part for line in lines if line.state == state]:
            return f"{said}: {', '.join(parts)}."
    return "All is well."
