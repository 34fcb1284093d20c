"""Resources for people: the report of an apply, a description, the difference to what is applied."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from casework.cli.output import cell, safe, table, when, words
from casework.values import Plain


def report(found: Mapping[str, Any]) -> None:
    """One line for each manifest, one for each workflow that got a version."""
    suffix = " (dry run)" if found["dry_run"] else ""
    for one in found["items"]:
        run = f", run {one['run_id']}" if one["run_id"] else ""
        click.echo(f"{one['kind']}/{one['name']} {one['outcome']}: generation {one['generation']}{run}{suffix}")
    for one in found["published"]:
        click.echo(f"workflow {one['name']} is at version {one['version']}{suffix}")


def description(found: Mapping[str, Any]) -> None:
    """Who applied it and when, its conditions, what else its status says, its spec, its generations."""
    status = dict(found["status"])
    click.echo(f"{found['kind']}/{found['name']}")
    click.echo(
        f"  generation {found['generation']}, applied by {safe(found['applied_by'])} {when(found['applied_at'])}"
    )
    click.echo(f"  observed generation {status.pop('observedGeneration', None)}\n")
    rows = [{**one, "lastTransitionTime": when(one.get("lastTransitionTime"))} for one in status.pop("conditions", [])]
    table(rows, _CONDITIONS, "No conditions.")
    executions = status.pop("nodeExecutions", [])
    if status:
        click.echo("\nStatus")
        for key, value in status.items():
            shown = when(value) if key.endswith("Time") else words(value)
            click.echo(f"  {key}: {cell(shown, 200)}")
    if executions:
        click.echo("")
        table([{**one, "startTime": when(one.get("startTime"))} for one in executions], _EXECUTIONS, "")
    click.echo("\nSpec")
    for line in yaml_lines(lean(in_order(found["manifest"]))["spec"]):
        click.echo(f"  {line}")
    click.echo("")
    rows = [{**one, "applied_at": when(one["applied_at"]), "deleted": "deleted" if one["deleted"] else ""}
            for one in found["generations"]]  # fmt: skip
    table(rows, {"generation": "GENERATION", "applied_by": "BY", "applied_at": "APPLIED", "deleted": ""}, "")


_CONDITIONS = {
    "type": "CONDITION", "status": "STATUS", "reason": "REASON", "lastTransitionTime": "SINCE", "message": "MESSAGE",
}  # fmt: skip
_EXECUTIONS = {
    "path": "STEP", "name": "NAME", "state": "STATE", "attempt": "ATTEMPT", "startTime": "STARTED", "error": "ERROR",
}  # fmt: skip


def difference(name: str, before: Any, after: Any) -> Iterator[str]:
    """A unified difference of two manifests, line by line; nothing where they say the same."""
    old, new = ([] if one is None else yaml_lines(_ordered(lean(one))) for one in (before, after))
    yield from difflib.unified_diff(old, new, f"applied/{name}", f"file/{name}", lineterm="")


_FIRST = ("apiVersion", "kind", "metadata", "name", "id", "type", "from", "to")
"""Keys that a reader looks for first."""


def _ordered(value: Any) -> Plain:
    """With the keys of every mapping in one order: the database keeps none."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=_place)}
    return [_ordered(item) for item in value] if isinstance(value, (list, tuple)) else value


def _place(key: str) -> tuple[int, str]:
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)


def in_order(manifest: Plain) -> dict[str, Plain]:
    """A manifest with its fields in the order of the models."""
    from casework.graph.kinds import ALL_KINDS

    assert isinstance(manifest, dict)
    dumped: dict[str, Plain] = ALL_KINDS[str(manifest["kind"])].model_validate(manifest).model_dump(by_alias=True)
    head: dict[str, Plain] = {key: dumped[key] for key in ("apiVersion", "kind")}
    return {**head, **dumped}


def lean(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest for a reader: edges without a condition that is empty and an `onError` that is false."""
    spec = manifest["spec"]
    if "edges" not in spec:
        return dict(manifest)
    edges = [{key: item for key, item in edge.items() if (key, item) not in _OF_ITSELF} for edge in spec["edges"]]
    return {**manifest, "spec": {**spec, "edges": edges}}


_OF_ITSELF = (("condition", ""), ("onError", False))
"""What an edge has where its writer says nothing."""


def yaml_lines(value: Plain) -> list[str]:
    """A plain value as lines of YAML that a terminal can show."""
    from casework.graph.schemas.writing import value_text

    return [safe(line) for line in value_text(value).splitlines()]
