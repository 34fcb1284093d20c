"""A run on a terminal: state first, then what it is doing, evidence, policy beside the model's word, and the review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from casework.cli.output import cell, gist, table, when, words


def print_run(run: Mapping[str, Any]) -> None:
    """Print a run's detail as the API gives it."""
    click.echo(f"Run {run['run_id']}  {run['workflow']} v{run['workflow_version']}")
    outcome = f", outcome {run['outcome']}" if run.get("outcome") else ""
    click.echo(f"Status {run['status']}{outcome}; turn {run['turn']} of {run['turn_limit']}; user {run['user']}")
    now = f"ended {when(run['ended_at'])}" if run["ended_at"] else run["doing"]["text"]
    click.echo(f"Started {when(run['created_at'])}; {now}")
    for name in ("failure", "incident"):
        if run.get(name):
            click.echo(f"{name.capitalize()}: {words(run[name])}")
    click.echo(f"Input: {words(run['input'])}")
    _evidence(run.get("evidence") or {})
    _steps(run.get("steps") or [])
    _policy(run.get("policy") or {})
    _review(run.get("review"))


def _evidence(evidence: Mapping[str, Any]) -> None:
    if evidence:
        click.echo("\nEvidence")
        for name, result in evidence.items():
            click.echo(f"  {name}: {cell(words(result), 300)}")


def _steps(steps: list[Any]) -> None:
    click.echo("")
    rows = [{**step, "latency": _latency(step)} for step in steps]
    columns = {"path": "STEP", "state": "STATE", "attempt": "ATTEMPT", "latency": "TIME", "error": "ERROR"}
    table(rows, columns, "No steps yet.")


def _latency(step: Mapping[str, Any]) -> str:
    return "" if step.get("latency_ms") is None else f"{step['latency_ms']} ms"


def _policy(policy: Mapping[str, Any]) -> None:
    evaluation = policy.get("evaluation")
    if not isinstance(evaluation, Mapping):
        return
    named = f"{evaluation.get('policy_name')} v{evaluation.get('version')} from {evaluation.get('source')}"
    click.echo(f"\nPolicy {named}: {evaluation.get('recommendation')}; {evaluation.get('rationale')}")
    columns = {"rule": "RULE", "comparison": "", "threshold": "THRESHOLD", "actual": "ACTUAL", "result": "RESULT",
               "note": "NOTE"}  # fmt: skip
    table(list(evaluation.get("rules") or ()), columns, "No rules.")
    click.echo(f"Model: {cell(gist(policy.get('model')), 300)}")


def _review(review: Mapping[str, Any] | None) -> None:
    if not review:
        return
    click.echo(f"\nReview {review['review_id']} (turn {review['turn']}): {review['status']}")
    if review.get("note"):
        click.echo(f"  Note: {review['note']}")
    if review["status"] == "pending":
        click.echo(f"  Decide with: casework review decide {review['review_id']} COMMAND --reason TEXT")
        click.echo(f"  Commands: {', '.join(review['decisions'])}")
    for decision in review.get("given") or ():
        word = "accepted" if decision["accepted"] else f"ignored ({decision['ignored']})"
        click.echo(f"  {decision['command']} by {decision['reviewer']} {when(decision['at'])}: {word}")
