"""The audit trail for people, and the checks that find a gap in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from casework.cli.output import cell, facts, gist, when, words

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
        if step["state"] == "COMPLETED" and len(done) != 1:
            yield f"Step {step['path']} is COMPLETED and has {len(done)} completed attempts."


def print_trail(trail: Trail, missing: list[str]) -> None:
    """Print the trail: the run, then each part in the order of time."""
    run = trail["run"]
    click.echo(f"Run {run['run_id']}  {run['workflow_name']} v{run['workflow_version']}  tenant {run['tenant']}")
    click.echo(f"User {run['user_id']}, sent by {run['actor']} at {when(run['created_at'])}")
    click.echo(f"Input: {cell(words(run['request']), WIDTH)}")
    outcome = f", outcome {run['outcome']}" if run["outcome"] else ""
    ended = f", ended {when(run['ended_at'])}" if run["ended_at"] else ""
    click.echo(f"Status {run['status']}{outcome}{ended}")
    if run["failure"]:
        click.echo(f"Failure: {cell(run['failure'], WIDTH)}")
    _policies(trail["policies"])
    _steps("Evidence", trail["evidence"])
    _steps("Model calls", trail["model_calls"])
    _reviews(trail["reviews"], trail["stray_decisions"])
    _events(trail["events"])
    _used(trail["metrics"]["run"])
    for gap in missing:
        click.echo(f"GAP: {gap}")
    click.echo(f"\nThe trail is {'NOT whole' if missing else 'whole'}.")


def _policies(uses: Iterable[Trail]) -> None:
    click.echo("\nPolicy used")
    for use in uses:
        scope = f"turn {use['turn']}" if use["turn"] else "the whole run"
        click.echo(f"  {use['purpose']}: {use['policy_name']} v{use['version']} from {use['source']}, for {scope}")


def _steps(title: str, steps: Iterable[Trail]) -> None:
    click.echo(f"\n{title}")
    for step in steps:
        click.echo(f"  {step['path']}: {step['state']} at attempt {step['attempt']}")
        if step["arguments"] is not None:
            click.echo(f"    asked: {cell(words(step['arguments']), WIDTH)}")
        if step["result"] is not None:
            click.echo(f"    found: {cell(words(step['result']), WIDTH)}")
        if step["error"]:
            click.echo(f"    error: {cell(step['error'], WIDTH)}")
        for attempt in step["attempts"]:
            if attempt["outcome"] != "COMPLETED":
                reason = f": {cell(attempt['error'], WIDTH)}" if attempt["error"] else ""
                click.echo(f"    attempt {attempt['attempt']} {attempt['outcome'] or 'in flight'}{reason}")


def _reviews(reviews: Iterable[Trail], stray: Iterable[Trail]) -> None:
    click.echo("\nReviews")
    for review in reviews:
        waited = "still waits" if review["waited_seconds"] is None else f"waited {review['waited_seconds']} s"
        click.echo(f"  {review['path']} (turn {review['turn']}, {review['review_id']}): {review['status']}, {waited}")
        click.echo(f"    recommended: {cell(gist(review['recommendation']), WIDTH)}")
        for decision in review["given"]:
            click.echo(f"    {_decision(decision)}")
    for decision in stray:
        click.echo(f"  to no review: {_decision(decision)}")


def _decision(decision: Trail) -> str:
    word = "accepted" if decision["accepted"] else f"ignored ({cell(decision['ignored'], WIDTH)})"
    said = cell(decision["reason"], WIDTH)
    return f"{when(decision['created_at'])} {cell(decision['reviewer'])}: {cell(decision['command'])}, {word}: {said}"


def _events(events: Iterable[Trail]) -> None:
    click.echo("\nEvents")
    for event in events:
        data = cell(facts(event["data"]), WIDTH)
        click.echo(f"  {event['seq']:>4} {when(event['at'])} {event['kind']} {event['path']} {data}".rstrip())


def _used(metrics: Trail) -> None:
    click.echo(
        f"\nUsed: {metrics['model_calls']} model calls, {metrics['tool_calls']} tool calls, {metrics['tokens_in']} "
        f"tokens in, {metrics['tokens_out']} out, cost {words(metrics['cost'])}"
    )
