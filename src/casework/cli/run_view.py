"""A run on a terminal: its state, evidence, policy beside the agent's word, what its nodes gave, and the review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from casework.cli.forking import print_links
from casework.cli.output import safe, table, when
from casework.cli.parts_view import NOTHING, is_evaluation, policy_named, print_lines, print_rules, told
from casework.cli.review_view import print_given


def print_run(run: Mapping[str, Any]) -> None:
    """Print a run's detail as the API gives it."""
    click.echo(f"Run {run['run_id']}  {run['workflow']} v{run['workflow_version']}")
    outcome = f", outcome {told(run['outcome'])}" if run.get("outcome") else ""
    click.echo(f"Status {run['status']}{outcome}; turn {run['turn']} of {run['turn_limit']}; user {told(run['user'])}")
    click.echo(f"Started {when(run['created_at'])}; {_now(run)}")
    if run.get("failure"):
        click.echo(f"Failure: {told(run['failure'])}")
    if run.get("incident"):
        click.echo(f"Incident: {told(_untold(run['incident'], run['doing']['text']))}")
    print_links(run)
    click.echo(f"Input: {told(run['input'])}")
    evaluation = (run.get("policy") or {}).get("evaluation")
    _evidence({name: result for name, result in (run.get("evidence") or {}).items() if result != evaluation})
    click.echo("")
    print_steps(run.get("steps") or [])
    if run.get("earlier_steps"):
        click.echo(f"  (there are earlier steps: casework runs steps {run['run_id']})")
    _policy(evaluation)
    _outputs(run.get("recommendation"), run.get("context") or {}, evaluation)
    for review in run["open_reviews"] or filter(None, [run["review"]]):
        _review(review)


def _now(run: Mapping[str, Any]) -> str:
    if run["ended_at"]:
        return f"ended {when(run['ended_at'])}"
    doing = run["doing"]
    due = f"; tried again at {when(doing['next_attempt_at'])}" if doing.get("next_attempt_at") else ""
    since = f" (since {when(doing['since'])})" if doing.get("kind") in _SINCE and doing.get("since") else ""
    return f"{told(doing['text'])}{since}{due}"


def _untold(incident: Any, doing: str) -> Any:
    """The incident without its reason, where that stands in what the run is doing."""
    reason = incident.get("reason") if isinstance(incident, Mapping) else None
    if not reason or str(reason) not in doing:
        return incident
    return {key: value for key, value in incident.items() if key != "reason"}


_SINCE = {"waiting_for_person", "waiting", "no_worker", "store_fault"}
"""What is told with the time it began; of work in hand the steps tell it."""


def _evidence(evidence: Mapping[str, Any]) -> None:
    if evidence:
        click.echo("\nEvidence: the last result of each tool")
        for name, result in evidence.items():
            click.echo(f"  {name}: {told(result)}")


def print_steps(steps: list[Any]) -> None:
    """Print steps as a table."""
    rows = [{**step, "latency": _latency(step)} for step in steps]
    columns = {"path": "STEP", "state": "STATE", "attempt": "ATTEMPT", "latency": "TIME", "error": "ERROR"}
    table(rows, columns, "No steps yet.")


def _latency(step: Mapping[str, Any]) -> str:
    return "" if step.get("latency_ms") is None else f"{step['latency_ms']} ms"


def _policy(evaluation: Any) -> None:
    if is_evaluation(evaluation):
        click.echo(f"\nPolicy {policy_named(evaluation)}")
        print_rules(evaluation)
    elif evaluation:
        click.echo(f"\nPolicy: {told(evaluation)}")


def _outputs(recommendation: Any, context: Mapping[str, Any], evaluation: Any) -> None:
    """What the agent recommends and what nodes gave by their outputKey, in full: this is what a person approves."""
    if recommendation is not None:
        click.echo("\nRecommendation")
        print_lines(recommendation)
    for key, value in sorted(context.items()):
        if value not in (recommendation, evaluation):  # these stand above already
            click.echo(f"\nOutput {safe(key)}")
            print_lines(value)


def _review(review: Mapping[str, Any]) -> None:
    click.echo(f"\nReview {review['review_id']} at {safe(review['path'])} (turn {review['turn']}): {review['status']}")
    if review.get("note"):
        click.echo(f"  Note: {told(review['note'])}")
    if review["status"] == "pending":
        click.echo(f"  Decide with: casework review decide {review['review_id']} COMMAND --reason TEXT")
        click.echo(f"  Commands: {', '.join(review['decisions']) or NOTHING}")
    print_given(review, "  ")
