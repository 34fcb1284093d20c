"""`casework steps`: steps of all runs that are tried again, in flight, or failed for good."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from casework.cli.output import emit_json, json_option, when
from casework.cli.parts_view import told

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST_S = 3650 * 86_400
_HOW = {"refused": "refused without being tried", "told": "said no for good", "given_up": "given up", None: "failed"}
_EMPTY = {
    "retrying": "No step is tried again.",
    "started": "No step is in flight.",
    "failed": "No step failed for good.",
}


@click.group()
def steps() -> None:
    """Which steps are tried again, and which failed for good."""


def _since(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """`90m`, `12h`, `7d` before now, or an instant with its zone; as an instant."""
    if value is None:
        return None
    text = value.strip()
    try:
        if text[-1:] in _UNITS and text[:-1].isdecimal() and len(text) < 12:
            before = timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
            if before.total_seconds() <= _LONGEST_S:
                return (datetime.now(UTC) - before).isoformat()
        elif (moment := datetime.fromisoformat(text)).tzinfo is not None:
            return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        pass
    raise click.BadParameter(f"{text[:40]!r} is neither a time such as 90m, 12h, 7d nor an instant with its zone.")


@steps.command("list")
@click.option("--retrying", "states", flag_value="retrying", multiple=True, help="An attempt failed or was lost.")
@click.option(
    "--failed", "states", flag_value="failed", multiple=True, help="Failed for good: given up, refused, told."
)
@click.option("--started", "states", flag_value="started", multiple=True, help="All that are in flight.")
@click.option("--since", callback=_since, help="With --failed: since 90m, 12h, 7d or an instant (default: a day).")
@click.option("--tool", help="Only this tool's.")
@click.option("--model", help="Only this model's.")
@click.option("--workflow", help="Only those of runs of this workflow.")
@click.option("--run", "run_id", metavar="RUN", help="Only this run's.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Steps of one page.")
@click.option("--cursor", help="Go on where the page before ended (its next_cursor).")
@json_option
def list_(
    *, states: tuple[str, ...], tool: str | None, model: str | None, run_id: str | None, as_json: bool, **query: Any
) -> None:
    """Steps of all runs; say which: --retrying, --failed or --started."""
    from casework.cli.http import Api
    from casework.cli.runs import checked_id

    if len(states) != 1 or (tool and model):
        raise click.UsageError(
            "Say which steps: one of --retrying, --failed and --started; of a --tool or a --model, not both."
        )
    state = states[0]
    if query["since"] and state != "failed":
        raise click.UsageError("--since goes with --failed: the others are shown however old they are.")
    query |= {"state": state, "name": tool or model, "kind": "tool" if tool else "model" if model else None}
    with Api.find() as api:
        page = api.get("/v1/steps", run_id=checked_id(run_id) if run_id else None, **query)
    if as_json:
        return emit_json(page)
    for step in page["items"]:
        _print(step)
    if not page["items"]:
        only = [f"{part} {name!r}" for part, name in (("tool", tool), ("model", model)) if name]
        click.echo(_EMPTY[state] + (f" Looked at: only {told(only[0])}." if only else ""))
    if page["next_cursor"]:
        click.echo(f"More: --cursor {page['next_cursor']}", err=True)
    return None


def _print(step: Mapping[str, Any]) -> None:
    """Three lines: where, how it stands, and why."""
    click.echo(f"{told(step['path'])}  run {step['run_id']}  {told(step['workflow'])}")
    click.echo(f"  {told(step['name'])}, {_stands(step)}")
    if step["error"]:
        click.echo(f"  {told(step['error'])}")


def _stands(step: Mapping[str, Any]) -> str:
    attempt, most = step["attempt"], step["attempts"]
    count = f"attempt {attempt} of {most}" if most and attempt <= most else f"attempt {attempt}"
    if step["state"] == "FAILED":
        at = f" at attempt {attempt}" if attempt else ""
        return f"{_HOW[step['how']]}{at}, {when(step['ended_at'])}"
    due = f", tried again at {when(step['next_attempt_at'])}" if step["next_attempt_at"] else ""
    return f"{count}, begun {when(step['started_at'])}{due}"
