"""`casework review`: what waits for a person, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from casework.cli import exits
from casework.cli.output import emit_json, gist, json_option, safe, table, when

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def review() -> None:
    """List and show what waits for a person, and decide it."""


@review.command("list")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Rows of one page.")
@click.option("--cursor", help="Go on where the page before ended (its next_cursor).")
@json_option
def list_(limit: int, cursor: str | None, as_json: bool) -> None:
    """Reviews that wait for a person, the oldest first."""
    from casework.cli.http import Api

    with Api.find() as api:
        page = api.get("/v1/reviews", limit=limit, cursor=cursor)
    if as_json:
        return emit_json(page)
    rows = [{**item, "since": when(item["created_at"]), "says": gist(item["recommendation"])} for item in page["items"]]
    table(rows, _COLUMNS, "Nothing waits for a person.")
    if page["next_cursor"]:
        click.echo(f"More: --cursor {page['next_cursor']}", err=True)
    return None


_COLUMNS = {"review_id": "REVIEW", "run_id": "RUN", "workflow": "WORKFLOW", "node": "NODE", "turn": "TURN",
            "since": "WAITING SINCE", "says": "RECOMMENDATION"}  # fmt: skip


@review.command()
@click.argument("run_or_review")
@json_option
def show(run_or_review: str, as_json: bool) -> None:
    """One review (or the one that a run waits for): the recommendation in full, and how it can be answered."""
    from casework.cli.http import Api
    from casework.cli.review_view import print_review
    from casework.cli.runs import checked_id

    with Api.find() as api:
        found = api.get(f"/v1/reviews/{_review_of(api, checked_id(run_or_review))}")
        run = None if as_json else api.get(f"/v1/runs/{found['run_id']}")
    emit_json(found) if run is None else print_review(found, run["policy"]["evaluation"])


_OPTIONS = (
    json_option,
    click.option("--timeout", type=click.FloatRange(0, 60), default=10.0, help="Most seconds to wait (with --wait)."),
    click.option("--wait", is_flag=True, help="Wait until the run has accepted or rejected the decision."),
    click.option("--decision-id", help="Id of this decision (UUID); the same id is the same decision."),
    click.option("--reason", default="", help="Why; with more-info needed, and what the agent reads."),
    click.argument("run_or_review"),
)


def _decision_options(command: F) -> F:
    for option in _OPTIONS:
        command = option(command)
    return command


@review.command()
@_decision_options
@click.argument("command")
def decide(command: str, **options: Any) -> int:
    """Answer a review (or the review that a run waits for) with COMMAND, one that its workflow knows."""
    return _decide(command, **options)


@review.command()
@_decision_options
def approve(**options: Any) -> int:
    """Short for decide ... approve."""
    return _decide("approve", **options)


@review.command()
@_decision_options
def reject(**options: Any) -> int:
    """Short for decide ... reject."""
    return _decide("reject", **options)


@review.command("more-info")
@_decision_options
def more_info(**options: Any) -> int:
    """Short for decide ... more_info: back to the agent, with the reason as its next message."""
    return _decide("more_info", **options)


def _decide(
    command: str, *, run_or_review: str, reason: str, decision_id: str | None, wait: bool, timeout: float, as_json: bool
) -> int:
    from casework.cli.http import Api
    from casework.cli.runs import checked_id

    body = {"command": command, "reason": reason, "decision_id": decision_id}
    query: dict[str, Any] = {"wait": "accepted", "timeout": timeout} if wait else {}
    with Api.find() as api:
        review_id = _review_of(api, checked_id(run_or_review))
        sent = {key: value for key, value in body.items() if value is not None}
        answer = api.post(f"/v1/reviews/{review_id}/decisions", sent, wait_s=timeout, **query).body
    emit_json(answer) if as_json else click.echo(_told(answer))
    return exits.OK


def _told(answer: Any) -> str:
    if answer["state"] == "accepted":
        return f"{answer['command']} was accepted for review {answer['review_id']}."
    return f"{answer['command']} was received for review {answer['review_id']}; the run will accept or ignore it."


def _review_of(api: Any, text: str) -> str:
    """The review of that id, or the one that the run of that id waits for.

    Raises:
        NotFoundError: it is neither.
        StateError: it is a run that waits for nobody, or asks more than one question.
    """
    from casework.errors import NotFoundError, StateError

    try:
        return str(api.get(f"/v1/reviews/{text}")["review_id"])
    except NotFoundError:
        pass
    try:
        run = api.get(f"/v1/runs/{text}")
    except NotFoundError:
        raise NotFoundError(f"There is neither a review nor a run {text}. `casework review list` shows them.") from None
    asked = run["open_reviews"]
    if not asked:
        doing = "" if run["ended_at"] else f" ({safe(run['doing']['text'])})"
        raise StateError(
            f"Run {text} is {run['status']} and waits for nobody{doing}. `casework runs show {text}` says more."
        )
    if len(asked) > 1:
        ones = "; ".join(f"{each['review_id']} at {safe(each['path'])}" for each in asked)
        raise StateError(f"Run {text} asks {len(asked)} questions. Name the review that you mean: {ones}.")
    return str(asked[0]["review_id"])
