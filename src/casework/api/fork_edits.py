"""Edits of a fork, checked before anything is written: values of the context, another version, another model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.api.inputs import check_bounds, check_input
from casework.errors import FieldsError
from casework.graph.bundle import PinnedWorkflow
from casework.graph.json_schemas import misfits
from casework.graph.manifests import Node
from casework.graph.recall import key_of
from casework.graph.words import nearest
from casework.values import Plain

INPUT = "input"


def check_values(edits: Mapping[str, Plain]) -> None:
    """That each value may travel through rows, history and answers.

    Raises:
        InputError: one is nested too deeply or too large.
    """
    for key, value in edits.items():
        check_bounds(value, f"context.{key}")


def check_context(pinned: PinnedWorkflow, edits: Mapping[str, Plain]) -> None:
    """That every key is one that runs of this workflow have, and that each value is one that it can have there.

    Raises:
        FieldsError: one does not hold; all are listed.
    """
    spec = pinned.workflow.spec
    known = [INPUT, *(key for node in spec.nodes if (key := key_of(node)) is not None)]
    errors = []
    for key, value in edits.items():
        if key not in known:
            hint = nearest(key, known) or f" There are: {', '.join(dict.fromkeys(known))}"
            errors.append({"field": f"context.{key}", "message": f"there is no such key in {pinned.name!r}.{hint}"})
        else:
            errors += _input(pinned, value) if key == INPUT else _misfits(pinned, key, value)
    if errors:
        fields = ", ".join(dict.fromkeys(error["field"] for error in errors))
        raise FieldsError(f"The edits do not fit workflow {pinned.name!r}: {fields}.", errors)


def check_node(pinned: PinnedWorkflow, version: int, node: str) -> Node:
    """The node in which the fork begins, in the version that it is to have.

    Raises:
        FieldsError: that version has none of this name.
    """
    found = pinned.workflow.spec.node(node)
    if found is None:
        there = ", ".join(each.id for each in pinned.workflow.spec.nodes)
        text = f"version {version} of {pinned.name!r} has no node {node!r} to begin in; there are {there}"
        raise FieldsError(f"The fork cannot begin: {text}.", [{"field": "workflow_version", "message": text}])
    return found


def _misfits(pinned: PinnedWorkflow, key: str, value: Plain) -> list[dict[str, str]]:
    """Why no node that stores under the key would store this."""
    why: list[dict[str, str]] = []
    for node in pinned.workflow.spec.nodes:
        if key_of(node) != key:
            continue
        schema = pinned.output_schema(node)
        found = [] if schema is None else misfits(schema, value)
        if not found:
            return []
        why = [{"field": _field(key, each.field), "message": each.message} for each in found]
    return why


def _field(key: str, inner: str) -> str:
    joint = "" if not inner or inner.startswith("[") else "."
    return f"context.{key}{joint}{inner}"


def _input(pinned: PinnedWorkflow, value: Any) -> list[dict[str, str]]:
    try:
        check_input(pinned.name, pinned.input_schema, value)
    except FieldsError as error:
        return [{**each, "field": f"context.{each['field']}"} for each in error.errors]
    return []
