"""`casework workflows`: what runs can be started of."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import click

from casework.cli.output import emit_json, json_option, table, words
from casework.cli.servers import app_option


@click.group()
def workflows() -> None:
    """The workflows that runs can be started of."""


@workflows.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Name and newest version of each workflow."""
    from casework.cli.http import Api

    with Api.find() as api:
        page = api.get("/v1/workflows")
    if as_json:
        return emit_json(page)
    return table(
        page["items"],
        {"name": "WORKFLOW", "version": "VERSION"},
        "No workflows. Write an App's with `casework workflows publish`.",
    )


@workflows.command()
@app_option
@json_option
def publish(reference: str | None, as_json: bool) -> None:
    """Write the workflows of the application to the database, as `casework dev` does at its start.

    The same content is the same version; changed content is the next one, which new runs take. Open runs keep theirs.
    """
    from casework.app import load_app
    from casework.cli import stack
    from casework.durable.publish import publish as run
    from casework.store.database import Database

    settings = stack.load()
    app = load_app(reference or settings.app.reference)

    async def write() -> dict[str, int]:
        async with await Database.open(settings.database.runtime_dsn(), max_size=1, name="casework-cli") as db:
            return await run(app, db)

    rows = [{"name": name, "version": version} for name, version in asyncio.run(write()).items()]
    if as_json:
        return emit_json({"items": rows})
    return table(rows, {"name": "WORKFLOW", "version": "VERSION"}, "The application has no workflows.")


@workflows.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Input fields, nodes and decisions of a workflow's newest version."""
    from casework.cli.http import Api

    with Api.find() as api:
        found = api.get(f"/v1/workflows/{quote(name, safe='')}")
    emit_json(found) if as_json else _print(found)


def _print(workflow: dict[str, Any]) -> None:
    click.echo(f"{workflow['name']} v{workflow['version']}")
    schema = workflow.get("input_schema") or {}
    needed = set(schema.get("required", ()))
    rows = [
        {"field": name, "type": words(part.get("type", "")), "needed": "required" if name in needed else "",
         "about": part.get("description")}
        for name, part in schema.get("properties", {}).items()
    ]  # fmt: skip
    table(rows, {"field": "FIELD", "type": "TYPE", "needed": "", "about": "ABOUT"}, "Its input has no schema.")
    click.echo("")
    nodes = [{**node, "decisions": ", ".join(node.get("decisions") or ())} for node in workflow["nodes"]]
    table(nodes, {"id": "NODE", "type": "TYPE", "decisions": "DECISIONS"}, "No nodes.")
