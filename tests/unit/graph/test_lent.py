"""Outcomes that only another run's decision stands behind, found before anything is done."""

from __future__ import annotations

import pytest

from casework.graph.lent import lent_end
from casework.graph.manifests import AiWorkflowSpec
from casework.graph.state import EngineState

APPROVAL = {"type": "HUMAN_APPROVAL", "decisions": [{"name": "yes", "outcome": "approved"}, {"name": "more"}]}
SPEC = AiWorkflowSpec.model_validate(
    {
        "initialNode": "work",
        "nodes": [
            {"id": "work", "type": "TOOL", "tool": "look"},
            {"id": "ask", **APPROVAL},
            {"id": "pay", "type": "TOOL", "tool": "look"},
            {"id": "fine", "type": "CONDITION", "expression": "true"},
            {"id": "rescue", "type": "TOOL", "tool": "look"},
        ],
        "edges": [
            {"from": "work", "to": "ask"},
            {"from": "ask", "to": "pay", "condition": "yes"},
            {"from": "ask", "to": "work", "condition": "more"},
            {"from": "pay", "to": "fine"},
            {"from": "pay", "to": "rescue", "onError": True},
            {"from": "fine", "to": "end", "condition": "true", "outcome": "approved"},
            {"from": "fine", "to": "work", "condition": "false"},
        ],
    }
)


def end_from(node: str, decided: str | None = None) -> str | None:
    """The source of the edge by which a run that begins at `node` may end with what `decided` gave before."""
    context = {} if decided is None else {"review": {"ask": {"decision": decided, "reason": "", "reviewer": "rita"}}}
    found = lent_end(SPEC, EngineState(current_node=node, context=context))
    return None if found is None else found.source


@pytest.mark.parametrize("node", ["pay", "fine"])
def test_an_end_behind_the_approval_is_found(node: str) -> None:
    """DA-12, AW-15. Also where another way leads elsewhere."""
    assert end_from(node, "yes") == "fine"


@pytest.mark.parametrize("node", ["work", "ask", "rescue"])
def test_where_a_person_is_asked_on_the_way_there_is_none(node: str) -> None:
    """AW-15. The decision of the new run is its own; and some ways have no such end."""
    assert end_from(node, "yes") is None


def test_what_nobody_decided_is_not_lent() -> None:
    """AW-15. A run that began at its first node would fare no better there."""
    assert end_from("pay") is None
    assert end_from("pay", "more") is None
