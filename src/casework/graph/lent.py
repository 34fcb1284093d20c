"""Outcomes that an edge to `end` names and that only a decision of another run stands behind.

A run that begins behind an approval knows what was decided there, and the decision is not its own. No run ends with an
outcome that none of its own decisions gives, so a way to such an end is a way into failure, with all that it does.
"""

from __future__ import annotations

from casework.graph.manifests import AiWorkflowSpec, Edge, Node
from casework.graph.shape import followable
from casework.graph.state import EngineState


def lent_end(spec: AiWorkflowSpec, state: EngineState) -> Edge | None:
    """An edge by which a run that begins in `state` may end, with an outcome that was decided before and not since."""
    for outcome in decided(spec, state):
        found = _end_without(spec, state.current_node or "", outcome)
        if found is not None:
            return found
    return None


def decided(spec: AiWorkflowSpec, state: EngineState) -> list[str]:
    """The outcomes of the decisions that the state knows, the last of each node."""
    made = state.context.get("review", {})
    found = (node.decision(made[node.id]["decision"]) for node in spec.nodes if node.id in made)
    return list(dict.fromkeys(each.outcome for each in found if each is not None and each.outcome is not None))


def gives(node: Node, decision: str, outcome: str | None) -> bool:
    """Whether a decision at the node gives the outcome."""
    found = node.decision(decision) if node.type == "HUMAN_APPROVAL" else None
    return found is not None and found.outcome == outcome


def _end_without(spec: AiWorkflowSpec, begin: str, outcome: str) -> Edge | None:
    """An end with the outcome that is reached from `begin` by a way on which nobody decides so."""
    seen: set[str] = set()
    waiting = [begin]
    while waiting:
        node = spec.node(waiting.pop())
        if node is None or node.id in seen:
            continue
        seen.add(node.id)
        ways = [edge for edge in followable(spec, node.id) if not gives(node, edge.condition, outcome)]
        for edge in [*ways, *spec.rescues(node.id)[:1]]:
            if edge.ends and edge.outcome == outcome:
                return edge
            waiting.append(edge.target)
    return None
