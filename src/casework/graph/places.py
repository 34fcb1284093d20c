"""Places: the nodes of a graph as the engine meets them, with all that it asks about one at every visit.

Found once for a graph, since a manifest's own objects are slow to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casework.graph.manifests import Edge, Node, NodeType


@dataclass(frozen=True)
class Way:
    """An edge that is followed where the node before it succeeds."""

    edge: Edge
    condition: str
    """Without the blanks around it."""
    free: bool
    """Whether it is followed whatever the context is."""
    target: str | None
    """The node it leads to; None where the run ends."""


@dataclass(frozen=True)
class Place:
    """A node, the key of what it stores (None where it stores nothing), and its ways on, in their order."""

    node: Node
    id: str
    type: NodeType
    key: str | None
    speaks: bool
    ways: tuple[Way, ...]


def places_of(nodes: Iterable[Node], ways: Mapping[str, Iterable[Edge]]) -> dict[str, Place]:
    """The place of each node by its id; `ways` are the edges out of each."""
    return {node.id: _place(node, ways.get(node.id, ())) for node in nodes}


def _place(node: Node, edges: Iterable[Edge]) -> Place:
    key = node.output_key or (None if node.type == "WAIT" else node.id)
    return Place(node, node.id, node.type, key, node.speaks, tuple(_way(edge) for edge in edges))


def _way(edge: Edge) -> Way:
    condition = edge.condition.strip()
    return Way(edge, condition, condition in ("", "true"), None if edge.ends else edge.target)
