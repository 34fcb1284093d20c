"""The books of business processes, for people."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import click

from casework.cli.output import safe


def print_books(books: Mapping[str, Any]) -> None:
    """Print how many rows there are, and below each check that found faults these, with what to do."""
    counts = books["counts"]
    if not counts["transactions"]:
        click.echo(f"Tenant {safe(repr(books['tenant']))} has no Transaction.")
    else:
        click.echo(
            f"{counts['transactions']} Transactions: {counts['open']} open, {counts['in_trays']} in trays, "
            f"{counts['completed']} COMPLETED, {counts['failed']} failed; {counts['steps']} steps"
        )
    for fault, told in groupby(books["faults"], key=lambda each: each["fault"]):
        _print_check(fault, list(told), books["checks"][fault])
    checks = len(books["checks"])
    click.echo(f"The books {'balance' if books['balanced'] else 'do NOT balance'}: {checks} checks.")


def _print_check(fault: str, told: list[Mapping[str, Any]], total: int) -> None:
    click.echo(f"FAULT {fault}: {total}")
    for each in told:
        click.echo(f"  {each['of']} {each['id']}: {safe(each['found'])}")
    if total > len(told):
        click.echo(f"  and {total - len(told)} more: --most {total} tells all")
    click.echo(f"  {told[0]['remedy']}")
