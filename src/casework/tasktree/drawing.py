"""A tree as plain data and as text. Both walk without recursion and stay small however deep the tree is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from casework.tasktree.paths import encoded

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

INDENT_LIMIT = 40
"""Levels that are shown by indentation; deeper ones say their level, else a deep tree would be drawn as blanks."""


def walk(top: TaskNode) -> Iterator[tuple[TaskNode, int]]:
    """`top` and all below it with their levels below `top`, parents before children, children in order."""
    stack = [(top, 0)]
    while stack:
        node, level = stack.pop()
        yield node, level
        stack.extend((child, level + 1) for child in reversed(node._children or ()))


def snapshot(top: TaskNode) -> list[dict[str, Any]]:
    """The tree from `top` down as a list that `json.dumps` takes, parents before children.

    Each entry has `kind` (the class), `step` (the last part of the path; empty at the root), `name`, `state`, `parent`
    (the place of the parent in this list; None for `top`), `error` (text or None) and `notes`.
    """
    entries: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for place, (node, level) in enumerate(walk(top)):
        places[level] = place
        error = node.exception
        entries.append(
            {
                "kind": type(node).__name__,
                "step": step_of(node),
                "name": node.name,
                "state": node.state.value,
                "parent": places[level - 1] if level else None,
                "error": None if error is None else f"{type(error).__name__}: {error}",
                "notes": list(node.notes),
            }
        )
    return entries


def render(top: TaskNode) -> str:
    """The tree from `top` down as text: a line for each node, with its state and its error."""
    lines = []
    for node, level in walk(top):
        indent = "  " * level if level <= INDENT_LIMIT else "  " * INDENT_LIMIT + f"(level {level}) "
        error = node.exception
        lines.append(
            f"{indent}{step_of(node) or node.name} {node.state}"
            + ("" if error is None else f" {type(error).__name__}: {error}".split("\n", 1)[0])
        )
    return "\n".join(lines)


def step_of(node: TaskNode) -> str:
    """The last part of the path of `node`: `name.ordinal`; empty at the root and before it has a place."""
    return "" if node.parent is None else f"{encoded(node.name)}.{node._ordinal}"
