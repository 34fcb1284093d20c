"""`casework keys`: the file of keys by which values in histories are encrypted. No key is ever shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from casework.durable.keys import KeyFile


@click.group()
def keys() -> None:
    """Make and change the keys by which values in the engine's histories are encrypted.

    They are in the file that CASEWORK_PAYLOAD_KEYS names. API, workers and command line need the same keys.
    """


@keys.command(name="list")
@json_option
def list_(as_json: bool) -> int:
    """The keys of the file by id, the oldest first, and which of them writes."""
    from casework.durable.keys import KeyFile

    path = _path()
    _show(path, KeyFile.load(path), as_json)
    return exits.OK


@keys.command()
@click.argument("key_id", metavar="[ID]", required=False)
@json_option
def add(key_id: str | None, as_json: bool) -> int:
    """Add a new key, which reads and does not write yet; makes the file if there is none.

    Without an ID it is named by the date. Bring the file to every process, then `casework keys rotate`.
    """
    from casework.durable.keys import KeyFile

    path = _path()
    made = (KeyFile.load(path) if path.exists() else KeyFile()).with_new(key_id)
    made.save(path)
    _show(path, made, as_json)
    return exits.OK


@keys.command()
@click.argument("key_id", metavar="[ID]", required=False)
@json_option
def rotate(key_id: str | None, as_json: bool) -> int:
    """Let another key write from now on, the newest unless an ID is given; the others go on reading.

    Processes that read this very file follow within moments; none need be started again.
    """
    from casework.durable.keys import KeyFile

    path = _path()
    made = KeyFile.load(path).written_by(key_id)
    made.save(path)
    _show(path, made, as_json)
    return exits.OK


def _path() -> Path:
    from casework.durable.keys import SETTING
    from casework.errors import SettingsError
    from casework.settings import Settings

    path = Settings.load().histories.keys
    if path is None:
        raise SettingsError(f"{SETTING} is not set. Set it to the file that the keys are to be in.", field=SETTING)
    return path


def _show(path: Path, file: KeyFile, as_json: bool) -> None:
    rows = [{"id": key.id, "made": key.made, "writes": key.id == file.writing} for key in file.keys]
    if as_json:
        emit_json({"file": str(path), "keys": rows})
        return
    for row in rows:
        click.echo(f"{row['id']}  made {row['made']}  {'writes and reads' if row['writes'] else 'reads'}")
    if file.writing is None:
        click.echo("No key writes yet, so nothing is encrypted. Let one: `casework keys rotate`.")
