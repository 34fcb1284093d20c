"""`casework runs`: start runs out of a file or one input, list them, look at one or two, fork, follow, cancel one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, table, when
from casework.cli.servers import app_option

STATUSES = ("PENDING", "RUNNING", "AWAITING_REVIEW", "COMPLETED", "FAILED", "CANCELLED")


@click.group()
def runs() -> None:
    """Start, list, show, compare, fork, watch and cancel runs."""


def _pairs(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in value:
        field, sign, column = text.partition("=")
        if not sign or not field.strip() or not column.strip():
            raise click.BadParameter(f"{text!r} is not FIELD=COLUMN, as in --map amount=loan_amnt")
        pairs[field.strip()] = column.strip()
    return pairs


def _answers(_: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[Any, ...]:
    if not value:
        return ()
    from casework.cli import local_answers

    read = local_answers.decision if option.name == "decisions" else local_answers.signal
    try:
        return tuple(read(text) for text in value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _refuse(given: Mapping[str, Any], why: str) -> None:
    for option, value in given.items():
        if value:
            raise click.UsageError(f"{option} {why}. Leave it out.")


@runs.command()
@click.argument("workflow")
@click.option("-f", "--file", "path", type=click.Path(path_type=Path), help="One run a row. - is stdin.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "csv"], case_sensitive=False),
    help="Form of the file (default: what its name ends in, else json; json takes lines of objects too).",
)
@click.option("--input", "text", metavar="JSON|@FILE", help="One input, as a JSON object. - is stdin.")
@click.option("--map", "mapping", multiple=True, callback=_pairs, metavar="FIELD=COLUMN", help="CSV column of a field.")
@click.option("--limit", type=click.IntRange(min=1), help="Start at most so many rows.")
@click.option("--parallel", type=click.IntRange(1, 64), default=4, show_default=True, help="Requests at one time.")
@click.option("--new", "anew", is_flag=True, help="Start anew even where the same file was started before.")
@click.option("--model", help="Model instead of the agent's own, as PROVIDER:MODEL.")
@click.option("--turn-limit", type=click.IntRange(min=1), help="Most turns of the agent (default: the API's, 5).")
@click.option("--on-behalf-of", metavar="USER", help="Start for another user (operators).")
@app_option
@click.option("--local", is_flag=True, help="Run it here, in memory, without servers; nothing survives.")
@click.option("--workflow", "chosen", metavar="NAME", help="--local: which workflow of a file that has several.")
@click.option(
    "--decide", "decisions", multiple=True, callback=_answers, metavar="NODE=DECISION[:REASON]",
    help="--local: a person's answer, given once. Without one you are asked, on a terminal.",
)  # fmt: skip
@click.option(
    "--signal", "signals", multiple=True, callback=_answers, metavar="NAME[=JSON]",
    help="--local: a signal that a WAIT node waits for.",
)  # fmt: skip
@json_option
def start(
    *,
    workflow: str,
    path: Path | None,
    form: str | None,
    text: str | None,
    mapping: dict[str, str],
    limit: int | None,
    parallel: int,
    anew: bool,
    model: str | None,
    turn_limit: int | None,
    on_behalf_of: str | None,
    reference: str | None,
    local: bool,
    chosen: str | None,
    decisions: tuple[Any, ...],
    signals: tuple[Any, ...],
    as_json: bool,
) -> int:
    """Start a run of WORKFLOW for each input. With --local WORKFLOW may be a manifest file, and there is one input.

    The same file started again starts nothing twice: each row has an idempotency key made of the file's content and
    its line. A row at fault is reported with its line, and the others go on; the exit code is then 2 (row at fault),
    3 (conflict) or what else went wrong first.
    """
    from casework.cli import submit

    if (path is None) == (text is None):
        raise click.UsageError("Give the input with -f FILE or with --input JSON, one of the two.")
    if local:
        from casework.cli import local_run

        _refuse({"--on-behalf-of": on_behalf_of, "--new": anew}, "is not for --local")
        given = local_run.LocalOrder(workflow, reference, chosen, model, turn_limit, decisions, signals)
        sheet = None if path is None else submit.Sheet(path, mapping, limit, form)
        return local_run.start(given, text, sheet, as_json)
    only_local = {"--app": reference, "--workflow": chosen, "--decide": decisions, "--signal": signals}
    _refuse(only_local, "is for --local")
    common = {"model": model, "turn_limit": turn_limit, "on_behalf_of": on_behalf_of}
    order = submit.Order(workflow, {key: value for key, value in common.items() if value is not None}, anew, parallel)
    if text is not None:
        return submit.single(order, text, as_json)
    assert path is not None
    return submit.file(order, submit.Sheet(path, mapping, limit, form), as_json)


@runs.command("list")
@click.option("--user", help="Only this user's.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only these.")
@click.option("--workflow", help="Only runs of this workflow.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Rows of one page.")
@click.option("--cursor", help="Go on where the page before ended (its next_cursor).")
@json_option
def list_(
    *, user: str | None, status: str | None, workflow: str | None, limit: int, cursor: str | None, as_json: bool
) -> None:
    """The newest runs first."""
    from casework.cli.http import Api

    with Api.find() as api:
        page = api.get("/v1/runs", user=user, status=status, workflow=workflow, limit=limit, cursor=cursor)
    if as_json:
        return emit_json(page)
    rows = [{**run, "created_at": when(run["created_at"])} for run in page["items"]]
    table(rows, _COLUMNS, "No runs.")
    if page["next_cursor"]:
        click.echo(f"More: --cursor {page['next_cursor']}", err=True)
    return None


_COLUMNS = {
    "run_id": "RUN", "workflow": "WORKFLOW", "status": "STATUS", "outcome": "OUTCOME", "current_node": "NODE",
    "turn": "TURN", "user": "USER", "created_at": "STARTED",
}  # fmt: skip


@runs.command()
@click.argument("run_id")
@json_option
def show(run_id: str, as_json: bool) -> None:
    """State, evidence, attempts, policy and review of one run."""
    from casework.cli.http import Api
    from casework.cli.run_view import print_run

    with Api.find() as api:
        detail = api.get(f"/v1/runs/{checked_id(run_id)}")
    emit_json(detail) if as_json else print_run(detail)


@runs.command()
@click.argument("run_id")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Steps of one page.")
@click.option("--cursor", help="Go on where the page before ended (its next_cursor).")
@json_option
def steps(run_id: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """All steps of one run, in the order of their starts, page by page."""
    from casework.cli.http import Api
    from casework.cli.run_view import print_steps

    with Api.find() as api:
        page = api.get(f"/v1/runs/{checked_id(run_id)}/steps", limit=limit, cursor=cursor)
    if as_json:
        return emit_json(page)
    print_steps(page["items"])
    if page["next_cursor"]:
        click.echo(f"More: --cursor {page['next_cursor']}", err=True)
    return None


@runs.command()
@click.argument("left", metavar="RUN")
@click.argument("right", metavar="RUN")
@json_option
def compare(left: str, right: str, as_json: bool) -> None:
    """Two runs side by side: status, outcome, input, outputs, and steps by their paths. `*` marks what differs."""
    from casework.cli.comparing import compared, print_comparison
    from casework.cli.http import Api

    with Api.find() as api:
        found = compared(api, checked_id(left), checked_id(right))
    emit_json(found) if as_json else print_comparison(found)


def _edits(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    if not value:
        return {}
    from casework.cli.forking import edits

    try:
        return edits(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@runs.command()
@click.argument("run_id")
@click.option("--step", metavar="PATH", help="A recorded step or visit (default: where the run last was).")
@click.option(
    "--context", multiple=True, callback=_edits, metavar="KEY=JSON", help="An edited value: input, or an output's key."
)
@click.option("--version", type=click.IntRange(min=1), help="Another applied version of the workflow.")
@click.option("--model", help="Model instead of the run's own, as PROVIDER:MODEL.")
@click.option("--key", help="Idempotency key: the same key and edits are the same fork (default: a new one).")
@json_option
def fork(
    *,
    run_id: str,
    step: str | None,
    context: dict[str, Any],
    version: int | None,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> int:
    """Start a new run from a recorded step of an old one. What was done before that step is not done again.

    The fork begins in the step's visit and keeps the steps of that visit that came before it. With edits of the context
    the visit begins anew as a whole. `runs steps` lists the steps of a run.
    """
    from casework.cli import forking

    return forking.fork(checked_id(run_id), forking.ForkOrder(step, context, version, model, key), as_json)


@runs.command()
@click.argument("run_id")
@click.option("--until", type=click.Choice(["rest", "end"]), default="rest", show_default=True,
              help="Stop when a person is asked or it ended (rest), or only when it ended.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0), help="Give up after so many seconds (exit code 1).")
@json_option
def watch(run_id: str, until: str, timeout: float | None, as_json: bool) -> int:
    """Print the events of a run as they come. With --json one event a line. A FAILED run gives exit code 1."""
    from casework.cli.http import Api
    from casework.cli.watching import watch_run

    with Api.find() as api:
        return watch_run(api, checked_id(run_id), until, timeout, as_json)


@runs.command()
@click.argument("run_id")
@click.option("--reason", default="", help="Why; kept with the run.")
@json_option
def cancel(run_id: str, reason: str, as_json: bool) -> int:
    """Stop a run. The answer says that the request was received; `runs watch --until end` sees it done."""
    from casework.cli.http import Api

    with Api.find() as api:
        answer: Any = api.post(f"/v1/runs/{checked_id(run_id)}/cancel", {"reason": reason}).body
    emit_json(answer) if as_json else click.echo(f"Run {answer['run_id']}: the request to cancel was received.")
    return exits.OK


@runs.command()
@click.argument("run_id")
@click.argument("name")
@click.option("--payload", metavar="JSON", help="What the node that waits for it is given (default: null).")
@click.option("--signal-id", help="The same id is the same signal (default: a new one).")
@json_option
def signal(run_id: str, name: str, payload: str | None, signal_id: str | None, as_json: bool) -> int:
    """Send the signal NAME to a run. A WAIT node takes it, also one that the run comes to later."""
    from casework.cli.signalling import send

    return send(checked_id(run_id), name, payload, signal_id, as_json)


def checked_id(text: str) -> str:
    """A run's or review's id as the API wants it.

    Raises:
        InputError: it is no UUID.
    """
    from uuid import UUID

    from casework.errors import InputError

    try:
        return str(UUID(text.strip()))
    except ValueError:
        raise InputError(f"{text!r} is no id. Ids are UUIDs; `casework runs list` shows them.", field="id") from None
