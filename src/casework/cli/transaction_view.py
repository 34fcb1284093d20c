"""Printing one Transaction, and sending the answer for one that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import click

from casework.cli import exits
from casework.cli.http import Api
from casework.cli.output import cell, emit_json, safe, when
from casework.cli.process_view import path_of
from casework.errors import InputError
from casework.graph.words import shown
from casework.values import dumps, loads_once

_FACTS = {
    "status_before_error": "before error",
    "process": "process",
    "task": "task",
    "natural_key": "key",
    "business_key": "business key",
    "claim_id": "tray",
    "skip_until": "skips until",
    "parent_uuid": "split from",
    "cloned_from": "clone of",
}


def print_transaction(found: Mapping[str, Any]) -> None:
    """One Transaction in full."""
    click.echo(f"Transaction {found['uuid']} is {found['status']}")
    for name, text in _FACTS.items():
        if found[name] is not None:
            click.echo(f"{text:<13} {safe(str(found[name]))}")
    click.echo(f"{'since':<13} {when(found['start_time'])}{_until(found)}")
    click.echo(f"{'data':<13} {safe(dumps(found['data']))}")
    for each in found["stages"]:
        click.echo(f"stage  {when(each['at'])}  {each['before'] or '(none)'} -> {each['after']}  by {safe(each['by'])}")
    for each in found["steps"]:
        failed = f": {cell(each['error'], 100)}" if each["error"] else ""
        where = f"{safe(each['process'])}/{safe(each['path'])}"
        click.echo(f"step   {when(each['started_at'])}  {where}  {each['state']}, attempt {each['attempt']}{failed}")
    for each in found["errors"]:
        print_error(each)
    for each in found["runs"]:
        click.echo(
            f"run    {when(each['at'])}  {each['run_id']} of {safe(each['task'])} is {each['status'] or 'deleted'}"
        )
    for kind in ("children", "clones"):
        for each in found[kind]:
            click.echo(f"{'child' if kind == 'children' else 'clone':<6} {each['uuid']} is {each['status']}")
    _print_wait(found["waits"])
    if found["answers"]:
        click.echo(f"It has failed; on offer: {', '.join(found['answers'])}.")


def print_error(error: Mapping[str, Any]) -> None:
    """One line, and where the software failed the place in the code."""
    where = f"{safe(error['process'])}/{safe(error['task'])}, attempt {error['attempt']}"
    told = f"{error['type']} {safe(error['code'])} at {where}: {cell(error['short'], 100)}"
    click.echo(f"error  {when(error['failed'])}  {told}")
    place = error["full"].rpartition("\n")[2]
    if place.startswith("at "):
        click.echo(f"       {cell(place, 200)}")


def _print_wait(waits: Mapping[str, Any] | None) -> None:
    if waits is None:
        return
    missing = ", ".join(waits["missing"][:10]) + (", ..." if waits["missing"][10:] else "")
    where = f"{safe(waits['process'])}/{safe(waits['task'])}"
    click.echo(f"It waits at {where} since {when(waits['since'])}; not there yet: {missing}")


def _until(found: Mapping[str, Any]) -> str:
    if found["end_time"] is None:
        return ""
    straight = "straight through" if found["straight_through"] else "touched by a person"
    by_hand = ", completed by hand" if found["by_hand"] else ""
    return f" until {when(found['end_time'])}, {straight}{by_hand}"


def id_of(api: Api, uuid: str | None, key: str | None) -> str:
    """The id of the Transaction that a command names, by its id or by its natural key.

    Raises:
        InputError: `uuid` is no id, or no Transaction has the key.
        UsageError: both are named, or neither.
    """
    if (uuid is None) == (key is None):
        raise click.UsageError("Name one Transaction: its ID, or its natural key by --key KEY.")
    if key is not None:
        items = api.get("/v1/transactions", natural_key=key, limit=1)["items"]
        if not items:
            raise InputError(
                f"No Transaction has the natural key {shown(key)}. Find it by `casework transaction list --key PART`.",
                field="--key",
            )
        return str(items[0]["uuid"])
    assert uuid is not None
    try:
        return str(UUID(uuid))
    except ValueError:
        raise InputError(
            f"ID is {shown(uuid)}, which is no UUID. Give the Transaction's id, as `casework transaction list` has it; "
            "or its natural key, by --key.",
            field="ID",
        ) from None


def answer(
    which: tuple[str | None, str | None], verb: str, body: dict[str, Any], data: str | None, as_json: bool
) -> int:
    """Send the answer for a failed Transaction (`id_of`), and print what became of it.

    Raises:
        InputError: `data` is no JSON object; or as `id_of`.
    """
    if data is not None:
        body["data"] = _object(data)
    with Api.find() as api:
        made = api.post(path_of("transactions", id_of(api, *which), verb), body).body
    if as_json:
        emit_json(made)
        return exits.OK
    click.echo(f"Transaction {made['transaction']['uuid']} is {made['transaction']['status']}.")
    if made["clone"] is not None:
        click.echo(f"In its place goes {made['clone']['uuid']}, in status {made['clone']['status']}.")
    return exits.OK


def _object(text: str) -> Any:
    try:
        value = loads_once(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--data is not JSON: {error}. Correct it.", field="--data") from None
    if not isinstance(value, dict):
        raise InputError("--data is no JSON object. Give one.", field="--data")
    return value
