"""The shape of a graph: whether every edge leads somewhere, every node is reached, and every way has an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casework.graph.loading import nearest
from casework.graph.manifests import END, AiWorkflowSpec, Edge, Node

Problem = tuple[str, str]
"""Where, and what is wrong and what to do."""


def shape_problems(spec: AiWorkflowSpec) -> Iterator[Problem]:
    """What does not hold in the shape of the graph."""
    ids = [node.id for node in spec.nodes]
    yield from _ids(ids)
    if spec.initial_node not in ids:
        yield "initialNode", _no_node(spec.initial_node, ids)
    yield from _ends(spec, ids)
    for node in spec.nodes:
        yield from _errors(spec, node)
        yield from _CONDITIONS.get(node.type, _none)(spec, node)
    if spec.initial_node in ids and len(set(ids)) == len(ids):
        yield from _ways(spec)


def followable(spec: AiWorkflowSpec, node: str) -> list[Edge]:
    """The edges that may be followed when the node succeeds: not those of `false`, not those behind an open one."""
    found: list[Edge] = []
    vertex = spec.node(node)
    for edge in spec.ways(node):
        condition = edge.condition.strip()
        branching = vertex is not None and vertex.type in ("CONDITION", "HUMAN_APPROVAL")
        if branching or condition != "false":
            found.append(edge)
        if not branching and condition in ("", "true"):
            break
    return found


def _none(_spec: AiWorkflowSpec, _node: Node) -> Iterator[Problem]:
    yield from ()


def _no_node(name: str, ids: Iterable[str]) -> str:
    known = list(dict.fromkeys(ids))
    return f"there is no node {name!r}; there are {', '.join(known)}.{nearest(name, known)}"


def _ids(ids: list[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(ids):
        if ids.count(name) > 1:
            yield f"node {name!r}", f"{ids.count(name)} nodes have this id. Rename all but one."
    if END in ids:
        yield f"node {END!r}", f"{END!r} is the target that ends the run. Give the node another id."


def _ends(spec: AiWorkflowSpec, ids: list[str]) -> Iterator[Problem]:
    for edge in spec.edges:
        place = f"edge from {edge.source!r} to {edge.target!r}"
        if edge.source not in ids:
            yield place, f"from: {_no_node(edge.source, ids)}"
        if not edge.ends and edge.target not in ids:
            yield place, f"to: {_no_node(edge.target, [*ids, END])}"


def _errors(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    edges = [edge for edge in spec.edges if edge.source == node.id and edge.on_error]
    if len(edges) > 1:
        yield f"node {node.id!r}", "it has several onError edges and only the first is followed. Keep one."
    for edge in edges:
        if edge.condition.strip():
            yield f"node {node.id!r}", "an onError edge has no condition. Remove it, or remove onError."


def _branches(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    place = f"node {node.id!r}"
    given = [edge.condition.strip() for edge in spec.ways(node.id)]
    for name in ("true", "false"):
        if name not in given:
            yield place, f"a CONDITION needs an edge with condition {name}. Add it (to: {END} ends the run)."
        elif given.count(name) > 1:
            yield place, f"it has several edges with condition {name} and only the first is followed. Keep one."
    for other in dict.fromkeys(name for name in given if name not in ("true", "false")):
        yield place, f"an edge out of a CONDITION has condition true or false, not {other!r}. Change it."


def _decisions(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    place = f"node {node.id!r}"
    names = [decision.name for decision in node.decisions or ()]
    given = [edge.condition for edge in spec.ways(node.id)]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield place, f"several decisions are named {name!r}. Rename all but one."
        if name not in given:
            yield place, f"decision {name!r} has no edge. Add one with condition {name}."
        elif given.count(name) > 1:
            yield place, f"decision {name!r} has several edges and only the first is followed. Keep one."
    for other in dict.fromkeys(name for name in given if name not in names):
        known = f"there are {', '.join(dict.fromkeys(names))}" if names else "there are none"
        yield place, f"an edge has condition {other!r}, which is no decision; {known}.{nearest(other, names)}"


_CONDITIONS = {"CONDITION": _branches, "HUMAN_APPROVAL": _decisions}


def _ways(spec: AiWorkflowSpec) -> Iterator[Problem]:
    reached, ending = _reached(spec), _ending(spec)
    for node in spec.nodes:
        if node.id not in reached:
            yield f"node {node.id!r}", f"no way leads here from {spec.initial_node!r}. Add an edge to it, or remove it."
    stuck = [node.id for node in spec.nodes if node.id in reached and node.id not in ending]
    if stuck:
        names = ", ".join(repr(name) for name in stuck)
        yield f"node {stuck[0]!r}", f"no way leads to an end: a cycle with no exit ({names}). Add an edge to {END}."


def _reached(spec: AiWorkflowSpec) -> set[str]:
    reached: set[str] = set()
    waiting = [spec.initial_node]
    while waiting:
        name = waiting.pop()
        if name in reached or spec.node(name) is None:
            continue
        reached.add(name)
        rescue = spec.rescue(name)
        waiting += [edge.target for edge in [*followable(spec, name), *([rescue] if rescue else [])]]
    return reached


def _ending(spec: AiWorkflowSpec) -> set[str]:
    """The nodes from which the end can be reached without a failure; edges that lead nowhere count as ends."""
    before: dict[str, list[str]] = {node.id: [] for node in spec.nodes}
    waiting: list[str] = []
    for node in spec.nodes:
        for edge in followable(spec, node.id):
            before.get(edge.target, waiting).append(node.id)
        if not spec.ways(node.id):
            waiting.append(node.id)
    ending: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in ending:
            ending.add(name)
            waiting += before[name]
    return ending
