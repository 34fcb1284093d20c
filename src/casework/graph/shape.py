"""The shape of a graph: whether every edge leads somewhere, every node is reached, and every way has an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casework.graph.manifests import END, AiWorkflowSpec, Edge, Node
from casework.graph.problems import Problem
from casework.graph.words import nearest


def shape_problems(spec: AiWorkflowSpec) -> Iterator[Problem]:
    """What does not hold in the shape of the graph."""
    ids = [node.id for node in spec.nodes]
    broken = [*_ids(ids), *_start(spec, ids), *_ends(spec, ids)]
    for node in spec.nodes:
        broken += _CONDITIONS.get(node.type, _none)(spec, node)
    yield from broken
    for node in spec.nodes:
        yield from _errors(spec, node)
    for at, edge in enumerate(spec.edges):
        yield from _outcomes(spec, edge, at)
    if not broken:  # else what no way leads to may only follow from that
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


def _at(spec: AiWorkflowSpec, node: Node, what: str, *path: str | int) -> Problem:
    place = next(at for at, each in enumerate(spec.nodes) if each is node)
    return Problem(f"node {node.id!r}", what, ("nodes", place, *path))


def _edge_at(spec: AiWorkflowSpec, node: Node, edge: Edge, what: str) -> Problem:
    """A problem of a node that shows at one of its edges."""
    place = next(at for at, each in enumerate(spec.edges) if each is edge)
    return Problem(f"node {node.id!r}", what, ("edges", place))


def _ids(ids: list[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(ids):
        if ids.count(name) > 1:
            second = ids.index(name, ids.index(name) + 1)
            what = f"{ids.count(name)} nodes have this id. Rename all but one."
            yield Problem(f"node {name!r}", what, ("nodes", second, "id"))
    if END in ids:
        what = f"{END!r} is the target that ends the run. Give the node another id."
        yield Problem(f"node {END!r}", what, ("nodes", ids.index(END), "id"))


def _start(spec: AiWorkflowSpec, ids: list[str]) -> Iterator[Problem]:
    if spec.initial_node not in ids:
        yield Problem("initialNode", _no_node(spec.initial_node, ids), ("initialNode",))


def _ends(spec: AiWorkflowSpec, ids: list[str]) -> Iterator[Problem]:
    for at, edge in enumerate(spec.edges):
        place = _of(edge)
        if edge.source not in ids:
            yield Problem(place, f"from: {_no_node(edge.source, ids)}", ("edges", at, "from"))
        if not edge.ends and edge.target not in ids:
            yield Problem(place, f"to: {_no_node(edge.target, [*ids, END])}", ("edges", at, "to"))


def _of(edge: Edge) -> str:
    return f"edge from {edge.source!r} to {edge.target!r}"


def _outcomes(spec: AiWorkflowSpec, edge: Edge, at: int) -> Iterator[Problem]:
    if edge.outcome is not None:
        for what in _misplaced(spec, edge):
            yield Problem(_of(edge), f"outcome: {what}", ("edges", at, "outcome"))


def _misplaced(spec: AiWorkflowSpec, edge: Edge) -> Iterator[str]:
    """What is wrong with the outcome of an edge: it is that of a decision made before, and ends the run."""
    if not edge.ends:
        yield f"the run does not end here. Remove it, or lead to {END!r}."
    source = spec.node(edge.source)
    if source is not None and source.type == "HUMAN_APPROVAL" and not edge.on_error:
        yield "a decision has its own, in `decisions`. Move it there."
    known = [made.outcome for node in spec.nodes for made in node.decisions or () if made.outcome]
    if edge.outcome not in known:
        there = ", ".join(dict.fromkeys(known)) or "none"
        yield f"no decision has {edge.outcome!r}; there are: {there}.{nearest(edge.outcome or '', known)}"


def _errors(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    edges = spec.rescues(node.id)
    if len(edges) > 1:
        what = "it has several onError edges and only the first is followed. Keep one."
        yield _edge_at(spec, node, edges[1], what)
    for edge in edges:
        if edge.condition.strip():
            yield _edge_at(spec, node, edge, "an onError edge has no condition. Remove it, or remove onError.")


def _branches(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    ways = spec.ways(node.id)
    for name in ("true", "false"):
        made = [edge for edge in ways if edge.condition.strip() == name]
        if not made:
            yield _at(spec, node, f"a CONDITION needs an edge with condition {name}. Add it (to: {END} ends the run).")
        elif len(made) > 1:
            what = f"it has several edges with condition {name} and only the first is followed. Keep one."
            yield _edge_at(spec, node, made[1], what)
    for other, edge in {edge.condition.strip(): edge for edge in reversed(ways)}.items():
        if other not in ("true", "false"):
            what = f"an edge out of a CONDITION has condition true or false, not {other!r}. Change it."
            yield _edge_at(spec, node, edge, what)


def _decisions(spec: AiWorkflowSpec, node: Node) -> Iterator[Problem]:
    names = [decision.name for decision in node.decisions or ()]
    ways = spec.ways(node.id)
    for name in dict.fromkeys(names):
        made = [edge for edge in ways if edge.condition == name]
        if not made:
            what = f"decision {name!r} has no edge. Add one with condition {name}."
            yield _at(spec, node, what, "decisions", names.index(name))
        elif len(made) > 1:
            what = f"decision {name!r} has several edges and only the first is followed. Keep one."
            yield _edge_at(spec, node, made[1], what)
    for other, edge in {edge.condition: edge for edge in reversed(ways)}.items():
        if other not in names:
            known = f"there are {', '.join(dict.fromkeys(names))}" if names else "there are none"
            what = f"an edge has condition {other!r}, which is no decision; {known}.{nearest(other, names)}"
            yield _edge_at(spec, node, edge, what)


_CONDITIONS = {"CONDITION": _branches, "HUMAN_APPROVAL": _decisions}


def _ways(spec: AiWorkflowSpec) -> Iterator[Problem]:
    reached, ending = _reached(spec), _ending(spec)
    for node in spec.nodes:
        if node.id not in reached:
            yield _at(spec, node, f"no way leads here from {spec.initial_node!r}. Add an edge to it, or remove it.")
    stuck = [node for node in spec.nodes if node.id in reached and node.id not in ending]
    if stuck:
        names = ", ".join(repr(node.id) for node in stuck)
        yield _at(spec, stuck[0], f"no way leads to an end: a cycle with no exit ({names}). Add an edge to {END}.")


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
