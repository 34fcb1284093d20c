"""`casework transaction`: Transactions put in, listed, looked at, and answered for where they failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option

F = TypeVar("F", bound=Callable[..., Any])


def which(command: F) -> F:
    """A command on one Transaction: its id, or its natural key."""
    return click.argument("uuid", metavar="[ID]", required=False)(
        click.option("--key", metavar="KEY", help="Instead of ID: its natural key.")(command)
    )


_DATA: Callable[[F], F] = click.option("--data", metavar="JSON", help="A JSON object that is put over its data.")


@click.group()
def transaction() -> None:
    """Put Transactions in, list and show them, answer for failed ones."""


@transaction.command()
@click.option(
    "--input",
    "path",
    required=True,
    metavar="JSON|@FILE",
    help="Its data as a JSON object. The @ may be left out; - is stdin.",
)
@click.option("--key", help="Its natural key: what came before with the same one is left as it is.")
@click.option("--status", help="Status in which it begins, where there are several.")
@click.option("--business-key", help="What limits of concurrency count by.")
@click.option("--priority", type=int, help="Higher ones are claimed first (default: 0).")
@click.option(
    "--due", "due_time", metavar="INSTANT", help="Earlier ones are claimed first, as in 2026-01-31T08:00:00Z."
)
@json_option
def add(*, path: str, key: str | None, as_json: bool, **given: Any) -> int:
    """Put a Transaction in."""
    from casework.cli.http import Api
    from casework.cli.task_input import read_json

    body = {"data": read_json(path, "--input"), "natural_key": key, **given}
    with Api.find() as api:
        answer = api.post("/v1/transactions", {name: value for name, value in body.items() if value is not None})
    made = answer.body
    if as_json:
        emit_json(made)
    else:
        how = "is new" if answer.status == 201 else "was there before"
        click.echo(f"Transaction {made['uuid']} {how}, in status {made['status']}.")
    return exits.OK


@transaction.command("list")
@click.option("--status", help="Only these.")
@click.option("--process", help="Only those at this process.")
@click.option("--claim", metavar="ID", help="Only those of this tray.")
@click.option("--parent", metavar="ID", help="Only those split from this one.")
@click.option("--clone-of", metavar="ID", help="Only those that took the place of this one.")
@click.option("--key", help="Only those with this in their natural key.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Rows of one page.")
@click.option("--cursor", help="Go on where the page before ended (its next_cursor).")
@json_option
def list_(*, as_json: bool, **wanted: Any) -> int:
    """The newest Transactions first."""
    from casework.cli.http import Api
    from casework.cli.process_view import print_transactions

    with Api.find() as api:
        page = api.get("/v1/transactions", **wanted)
    emit_json(page) if as_json else print_transactions(page, wanted)
    return exits.OK


@transaction.command()
@which
@json_option
def show(uuid: str | None, key: str | None, as_json: bool) -> int:
    """One Transaction: stages, steps, errors, runs, children, clones, and what can be done about it."""
    from casework.cli.http import Api
    from casework.cli.process_view import path_of
    from casework.cli.transaction_view import id_of, print_transaction

    with Api.find() as api:
        found = api.get(path_of("transactions", id_of(api, uuid, key)))
    emit_json(found) if as_json else print_transaction(found)
    return exits.OK


@transaction.command()
@which
@click.option("--at", required=True, metavar="TASK", help="The task at which it goes on.")
@_DATA
@json_option
def retry(uuid: str | None, key: str | None, at: str, data: str | None, as_json: bool) -> int:
    """Let a failed Transaction go on at a task, where the policy has this answer."""
    from casework.cli.transaction_view import answer

    return answer((uuid, key), "retry", {"at": at}, data, as_json)


@transaction.command()
@which
@click.option("--into", required=True, metavar="STATUS", help="Status of the new one.")
@_DATA
@json_option
def clone(uuid: str | None, key: str | None, into: str, data: str | None, as_json: bool) -> int:
    """End a failed Transaction by ABORTED, and let a new one go on in its place."""
    from casework.cli.transaction_view import answer

    return answer((uuid, key), "clone", {"into": into}, data, as_json)


@transaction.command()
@which
@json_option
def abort(uuid: str | None, key: str | None, as_json: bool) -> int:
    """End a failed Transaction by ABORTED."""
    from casework.cli.transaction_view import answer

    return answer((uuid, key), "abort", {}, None, as_json)


@transaction.command()
@which
@_DATA
@json_option
def complete(uuid: str | None, key: str | None, data: str | None, as_json: bool) -> int:
    """Complete a failed Transaction by hand, where the policy has this answer; it is marked so in Analytics."""
    from casework.cli.transaction_view import answer

    return answer((uuid, key), "complete", {}, data, as_json)
