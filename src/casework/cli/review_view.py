"""A review on a terminal: since when it waits, what the agent recommends in full, and how it can be answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from casework.cli.output import is_form, when
from casework.cli.parts_view import NOTHING, is_evaluation, policy_named, print_lines, print_rules, told


def print_review(review: Mapping[str, Any], evaluation: Any = None) -> None:
    """Print a review's detail as the API gives it, with what policy says of its run (`evaluation`)."""
    click.echo(f"Review {review['review_id']}  {told(review['workflow'])}, node {told(review['node'])}")
    click.echo(f"Run {review['run_id']}: {review['run_status']}; turn {review['turn']}")
    since = when(review["created_at"])
    waits = review["status"] == "pending"
    click.echo(f"Waits for a person since {since}" if waits else f"Asked {since}; {_end(review)}")
    if review.get("note"):
        click.echo(f"Note: {told(review['note'])}")
    if review.get("recommendation") is not None:
        click.echo("\nQuestion" if is_form(review["recommendation"]) else "\nRecommendation")
        print_lines(review["recommendation"])
    if is_evaluation(evaluation):
        click.echo(f"\nPolicy {policy_named(evaluation)}")
        print_rules(evaluation)
    if waits:
        print_commands(review)
    if review.get("given"):
        click.echo("")
    print_given(review)


def _end(review: Mapping[str, Any]) -> str:
    return f"{told(review['status'])} {when(review['ended_at'])}"


def print_commands(review: Mapping[str, Any]) -> None:
    """How a pending review is answered, and which answers are refused, with the reason."""
    click.echo(f"\nDecide with: casework review decide {review['review_id']} COMMAND --reason TEXT")
    refused = review.get("refused") or {}
    open_ones = [name for name in review["decisions"] if name not in refused]
    click.echo(f"Commands: {', '.join(told(name) for name in open_ones) or NOTHING}")
    for name, why in refused.items():
        click.echo(f"Refused: {told(name)}: {told(why)}")


def print_given(review: Mapping[str, Any], indent: str = "") -> None:
    """The decisions that were given, each with what became of it."""
    for decision in review.get("given") or ():
        word = "accepted" if decision["accepted"] else f"ignored ({told(decision['ignored'])})"
        by = f"{told(decision['command'])} by {told(decision['reviewer'])} {when(decision['at'])}"
        click.echo(f"{indent}{by}: {word}; reason: {told(decision['reason'])}")
