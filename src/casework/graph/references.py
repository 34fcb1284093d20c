"""SUBWORKFLOW references between workflows: who refers to whom, circles, and the bundles that are pinned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casework.graph.manifests import AiWorkflow
from casework.graph.problems import Problem


def referred(spec: Any) -> tuple[str, ...]:
    """The workflows that a graph refers to, each once; `spec` is one, or its plain form."""
    if isinstance(spec, Mapping):
        nodes = [each for node in spec["nodes"] for each in (node, *node.get("branches", ()))]
        return tuple(dict.fromkeys(each["workflowRef"] for each in nodes if "workflowRef" in each))
    return tuple(dict.fromkeys(each.workflow_ref for each in spec.vertices if each.workflow_ref))


def below(name: str, calls: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """All that `name` refers to, directly or through others, in the order found; itself only in a circle."""
    found: dict[str, None] = {}
    waiting = [*reversed(calls.get(name, ()))]
    while waiting:
        other = waiting.pop()
        if other not in found:
            found[other] = None
            waiting += reversed(calls.get(other, ()))
    return tuple(found)


def circle_problems(workflow: AiWorkflow, calls: Mapping[str, tuple[str, ...]]) -> Iterator[Problem]:
    """The nodes by which a workflow would, in the end, start itself."""
    for at, node in enumerate(workflow.spec.nodes):
        spots: list[tuple[Any, str, tuple[str | int, ...]]] = [(node, f"node {node.id!r}", ("nodes", at))]
        for number, branch in enumerate(node.branches or ()):
            place = f"node {node.id!r}: branch {branch.id!r}"
            spots.append((branch, place, ("nodes", at, "branches", number)))
        for vertex, place, path in spots:
            way = _way(vertex.workflow_ref, workflow.name, calls) if vertex.workflow_ref else None
            if way:
                shown = " -> ".join([workflow.name, *way])
                what = f"workflowRef: it leads back to this workflow ({shown}), so no run would end. Break the circle."
                yield Problem(place, what, (*path, "workflowRef"))


def _way(start: str, goal: str, calls: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """The shortest way of references from `start` to `goal`, both included, or None."""
    ways = {start: [start]}
    waiting = [start]
    for name in waiting:
        if name == goal:
            return ways[name]
        for other in calls.get(name, ()):
            if other not in ways:
                ways[other] = [*ways[name], other]
                waiting.append(other)
    return None
