"""`casework task run`: one Task of a business process, called from its class, without servers."""

from __future__ import annotations

from typing import Any

import click

from casework.cli.output import json_option
from casework.cli.servers import app_option


@click.group()
def task() -> None:
    """Run one Task of a business process alone."""


@task.command()
@click.argument("name", metavar="CLASS|NAME")
@click.option(
    "--input", "path", required=True, metavar="JSON|@FILE",
    help="JSON object: the data of the Transaction, or a whole one (status, data, and what it has else). "
    "The @ may be left out; - is stdin.",
)  # fmt: skip
@app_option
@click.option(
    "--modules", "modules", multiple=True, metavar="MODULE:NAME",
    help="A dishka Provider, or a list of them, beside those of the application.",
)  # fmt: skip
@click.option("--status", help="The Transaction's status (default: that in which its process takes it in).")
@click.option("--attempt", type=click.IntRange(min=1), default=1, show_default=True, help="Which attempt this is.")
@click.option("--database", is_flag=True, help="In a transaction of the database, which is rolled back at the end.")
@click.option("--keep", is_flag=True, help="--database: commit instead, where the Task ends well.")
@click.option(
    "--children", metavar="JSON|@FILE",
    help="Join: JSON list of the children that have come, each as --input takes one.",
)  # fmt: skip
@click.option(
    "--error", "errors", multiple=True, metavar="CODE[:TEXT]", help="Error task: an error of the Transaction."
)
@click.option("--decide", metavar="DECISION[:REASON]", help="Manual task: what the person decides.")
@click.option("--decision-data", metavar="JSON", help="Manual task: what the decision brings, as a JSON object.")
@click.option("--outcome", help="Agent task: the outcome of its run, which is not started.")
@click.option("--output", metavar="JSON", help="Agent task: the output of its run.")
@json_option
def run(name: str, *, path: str, reference: str | None, as_json: bool, **given: Any) -> int:
    """Run one Task on one Transaction, and print what it changes.

    CLASS is the class of a Task as package.module:Class; NAME is the name of a task of the application. What its
    constructor asks for comes from the application's modules and from --modules. The exit code is 1 where the Task
    fails the Transaction.
    """
    from casework.cli.task_run import Order, run_one

    return run_one(Order(name, path, reference, **given), as_json)
