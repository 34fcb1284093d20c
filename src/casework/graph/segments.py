"""Which nodes of a graph may share one activity: chains of quick nodes, chosen from the graph alone.

Quick is a CONDITION, and a TOOL whose tool may be called again without asking anybody first. A chain is worth an
activity of its own where it can come to a second TOOL; fewer are as fast alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from casework.graph.manifests import AiWorkflowSpec, Node
from casework.graph.shape import followable


def is_quick(node: Node, tools: Collection[str]) -> bool:
    """Whether a node may be part of a chain; `tools` are those that are quick."""
    return node.type == "CONDITION" or (node.type == "TOOL" and node.tool in tools)


def chained(spec: AiWorkflowSpec, tools: Collection[str]) -> frozenset[str]:
    """The nodes from which a chain can come to a second TOOL; the quick `tools` are given by name."""
    after = _followers(spec, tools)
    of_tools = {node.id for node in spec.nodes if node.type == "TOOL"}
    firsts = {name for name in after if name in of_tools and _reached(after, after[name]) & of_tools}
    return frozenset(name for name in after if _reached(after, [name]) & firsts)


def quick_tools(spec: AiWorkflowSpec, declared: Collection[str]) -> tuple[str, ...]:
    """Of the tools that are `declared` such that they are quick: those of TOOL nodes, where there is a chain at all."""
    used = {node.tool for node in spec.nodes if node.type == "TOOL" and node.tool is not None}
    found = tuple(sorted(used & set(declared)))
    return found if chained(spec, found) else ()


def _followers(spec: AiWorkflowSpec, tools: Collection[str]) -> dict[str, list[str]]:
    """Of each quick node the quick nodes that may follow it."""
    quick = {node.id for node in spec.nodes if is_quick(node, tools)}
    return {
        node.id: [edge.target for edge in followable(spec, node.id) if edge.target in quick]
        for node in spec.nodes
        if node.id in quick
    }


def _reached(after: dict[str, list[str]], names: Iterable[str]) -> set[str]:
    """`names`, and all that can follow them."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += after[name]
    return seen
