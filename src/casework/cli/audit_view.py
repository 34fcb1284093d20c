"""The audit trail for people, and the checks that find a gap in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from casework.cli.output import safe, when
from casework.cli.parts_view import is_evaluation, policy_named, print_lines, print_rules, told
from casework.values import Plain

Trail = Mapping[str, Any]
WIDTH = 2000
"""Longest value of a line, in characters; the JSON form has all of it."""


def gaps(trail: Trail) -> list[str]:
    """What is missing for the trail to be whole; empty where nothing is."""
    return [*_outcome_gaps(trail), *_event_gaps(trail), *_evidence_gaps(trail)]


def _outcome_gaps(trail: Trail) -> Iterable[str]:
    outcome = trail["run"]["outcome"]
    given = [decision["outcome"] for review in trail["reviews"] for decision in review["given"] if decision["accepted"]]
    if outcome is not None and outcome not in given:
        yield f"The outcome {outcome!r} is given by no accepted decision."


def _event_gaps(trail: Trail) -> Iterable[str]:
    seen = [event["seq"] for event in trail["events"]]
    if seen != list(range(1, len(seen) + 1)):
        yield f"Event numbers are not 1 to {len(seen)} without a gap."


def _evidence_gaps(trail: Trail) -> Iterable[str]:
    for step in (*trail["evidence"], *trail["model_calls"]):
        done = [attempt["attempt"] for attempt in step["attempts"] if attempt["outcome"] == "COMPLETED"]
        there = 0 if step["taken_from"] else 1  # what a fork took over was tried where it was done
        if step["state"] == "COMPLETED" and len(done) != there:
            yield f"Step {step['path']} is COMPLETED and has {len(done)} completed attempts."


def print_trail(trail: Trail, missing: list[str]) -> None:
    """Print the trail: the run, then each part in the order of time. A part with nothing in it says so."""
    run = trail["run"]
    click.echo(
        f"Run {run['run_id']}  {run['workflow_name']} v{run['workflow_version']}  tenant {_short(run['tenant'])}"
    )
    click.echo(f"User {_short(run['user_id'])}, sent by {_short(run['actor'])} at {when(run['created_at'])}")
    if run["forked_from_run_id"]:
        click.echo(f"Forked from {_short(run['forked_from_path'])} of run {run['forked_from_run_id']}")
    click.echo(f"Input: {_short(run['request'])}")
    outcome = f", outcome {_short(run['outcome'])}" if run["outcome"] else ""
    ended = f", ended {when(run['ended_at'])}" if run["ended_at"] else ""
    click.echo(f"Status {run['status']}{outcome}{ended}")
    if run["failure"]:
        click.echo(f"Failure: {_short(run['failure'])}")
    _part("Policy used", trail["policies"], _policy)
    _part("Evidence", trail["evidence"], _step)
    _part("Model calls", trail["model_calls"], _step)
    _part("Reviews", trail["reviews"], _review)
    if trail["stray_decisions"]:
        _part("Decisions that named no review of this run", trail["stray_decisions"], _decision)
    _part("Events", trail["events"], _event)
    _used(trail["metrics"]["run"])
    for gap in missing:
        click.echo(f"GAP: {gap}")
    click.echo(f"\nThe trail is {'NOT whole' if missing else 'whole'}.")


def _part(title: str, rows: Sequence[Trail], tell: Callable[[Trail], None]) -> None:
    click.echo(f"\n{title}" if rows else f"\n{title}: none")
    for row in rows:
        tell(row)


def _short(value: Plain) -> str:
    text = told(value)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _policy(use: Trail) -> None:
    scope = f"turn {use['turn']}" if use["turn"] else "the whole run"
    named = f"{_short(use['policy_name'])} v{use['version']} from {_short(use['source'])}"
    click.echo(f"  {_short(use['purpose'])}: {named}, for {scope}")


def _step(step: Trail) -> None:
    taken = f", taken over from run {step['taken_from']}" if step["taken_from"] else ""
    click.echo(f"  {step['path']}: {step['state']} at attempt {step['attempt']}{taken}")
    if step["arguments"]:
        click.echo(f"    asked: {_short(step['arguments'])}")
    if is_evaluation(step["result"]):
        _evaluation(step["result"])
    elif step["result"] is not None:
        click.echo(f"    found: {_short(step['result'])}")
    if step["error"]:
        click.echo(f"    error: {_short(step['error'])}")
    for attempt in step["attempts"]:
        if attempt["outcome"] != "COMPLETED":
            reason = f": {_short(attempt['error'])}" if attempt["error"] else ""
            click.echo(f"    attempt {attempt['attempt']} {attempt['outcome'] or 'in flight'}{reason}")


def _evaluation(evaluation: Trail) -> None:
    """What policy said, rule by rule, and whatever else the evaluation holds."""
    click.echo(f"    found: policy {policy_named(evaluation)}")
    print_rules(evaluation, "    ")
    if other := {key: value for key, value in evaluation.items() if key not in _IN_SENTENCE}:
        click.echo(f"    with: {_short(other)}")


_IN_SENTENCE = frozenset(
    {"policy_name", "version", "source", "source_reason", "recommendation", "rationale", "rules"}
)  # fmt: skip


def _review(review: Trail) -> None:
    seconds = review["waited_seconds"]
    waited = "still waits" if seconds is None else f"waited {seconds:.1f} s"
    click.echo(f"  {review['path']} (turn {review['turn']}, {review['review_id']}): {review['status']}, {waited}")
    click.echo("    recommended:")
    print_lines(review["recommendation"], "      ")
    for decision in review["given"]:
        _decision(decision, "    ")


def _decision(decision: Trail, indent: str = "  ") -> None:
    word = "accepted" if decision["accepted"] else f"ignored ({_short(decision['ignored'])})"
    who = f"{when(decision['created_at'])} {_short(decision['reviewer'])}"
    click.echo(f"{indent}{who}: {_short(decision['command'])}, {word}; reason: {_short(decision['reason'])}")


def _event(event: Trail) -> None:
    data = event["data"]
    if isinstance(data, Mapping):
        data = {key: value for key, value in data.items() if value is not None}
    words = [event["kind"], safe(event["path"]), _short(data) if data else ""]
    click.echo(f"  {event['seq']:>4} {when(event['at'])} {' '.join(word for word in words if word)}")


def _used(metrics: Trail) -> None:
    click.echo(
        f"\nUsed: {metrics['model_calls']} model calls, {metrics['tool_calls']} tool calls, {metrics['tokens_in']} "
        f"tokens in, {metrics['tokens_out']} out, cost {told(metrics['cost'])}"
    )
