"""`casework runs fork`: a new run out of a recorded step of an old one; and how a fork is told beside its origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click

from casework.cli import exits
from casework.cli.http import Api
from casework.cli.output import emit_json
from casework.cli.parts_view import told
from casework.values import Plain, loads_once


@dataclass(frozen=True)
class ForkOrder:
    """What the fork is to be."""

    step: str | None
    context: Mapping[str, Plain]
    version: int | None
    model: str | None
    key: str | None


def edits(texts: Iterable[str]) -> dict[str, Plain]:
    """Each of the texts is `KEY=JSON`.

    Raises:
        ValueError: one is not of this form, or a key is there twice.
    """
    made: dict[str, Plain] = {}
    for text in texts:
        key, value = edit(text)
        if key in made:
            raise ValueError(f"{key!r:.100} is given twice. Give one value")
        made[key] = value
    return made


def edit(text: str) -> tuple[str, Plain]:
    """`KEY=JSON` as a key with its value.

    Raises:
        ValueError: it is not of this form.
    """
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ValueError(f"{text!r:.100} is not KEY=JSON, as in --context 'input={{\"amount\": 5}}'")
    try:
        return key.strip(), loads_once(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the value of {key.strip()!r:.100} is not JSON: {error}. A text needs its quotes") from None


def fork(run_id: str, order: ForkOrder, as_json: bool) -> int:
    """Ask for the fork, and tell what it keeps."""
    given = {
        "step": order.step,
        "context": dict(order.context),
        "workflow_version": order.version,
        "model": order.model,
    }
    body = {name: value for name, value in given.items() if value is not None}
    headers = {"Idempotency-Key": order.key or f"cli:{uuid4()}"}
    with Api.find() as api:
        answer: Any = api.post(f"/v1/runs/{run_id}/fork", body, headers=headers).body
    if as_json:
        emit_json(answer)
        return exits.OK
    kept = f"{answer['kept_steps']} steps of it are kept" if answer["kept_steps"] else "none of its steps is kept"
    click.echo(f"Run {answer['run_id']} begins in {told(answer['visit'])} of run {run_id}; {kept}.")
    if answer["anew"]:
        click.echo(f"Note: {told(answer['anew'])}.")
    return exits.OK


def print_links(run: Mapping[str, Any]) -> None:
    """Print where a run was forked from, and the runs that were forked from it."""
    origin = run.get("forked_from")
    if origin:
        click.echo(f"Forked from {told(origin['path'])} of run {origin['run_id']}")
    for one in run.get("forks") or ():
        click.echo(f"Fork {one['run_id']} from {told(one['path'])}: {one['status']}")
