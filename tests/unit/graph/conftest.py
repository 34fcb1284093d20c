"""Graphs that several tests use."""

from __future__ import annotations

from typing import Any

import pytest

from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider, Manifest

HEAD = {"apiVersion": "casework.dev/v1alpha1"}


def loan_spec(**changes: Any) -> dict[str, Any]:
    """The graph of the loan case, as a manifest says it."""
    return {
        "initialNode": "underwrite",
        "nodes": [
            {
                "id": "underwrite",
                "type": "AGENT",
                "agentRef": "underwriter",
                "inputTemplate": "Assess {{ input.amount }}.",
                "outputKey": "recommendation",
            },
            {
                "id": "decision",
                "type": "HUMAN_APPROVAL",
                "decisions": [
                    {"name": "approve", "outcome": "approved"},
                    {"name": "reject", "outcome": "declined"},
                    {"name": "more_info"},
                ],
            },
        ],
        "edges": [
            {"from": "underwrite", "to": "decision"},
            {"from": "decision", "to": "end", "condition": "approve"},
            {"from": "decision", "to": "end", "condition": "reject"},
            {"from": "decision", "to": "underwrite", "condition": "more_info"},
        ],
        **changes,
    }


def manifests(spec: dict[str, Any], *, agent: dict[str, Any] | None = None) -> list[Manifest]:
    """A workflow `loan` of that graph, with an agent and a provider."""
    agent_spec = {"provider": "scripted", "tools": ["credit_check"], **(agent or {})}
    return [
        AiWorkflow.model_validate({**HEAD, "kind": "AiWorkflow", "metadata": {"name": "loan"}, "spec": spec}),
        AiAgent.model_validate({**HEAD, "kind": "AiAgent", "metadata": {"name": "underwriter"}, "spec": agent_spec}),
        LlmProvider.model_validate(
            {
                **HEAD,
                "kind": "LlmProvider",
                "metadata": {"name": "scripted"},
                "spec": {"type": "scripted", "script": "loan"},
            }
        ),
    ]


@pytest.fixture
def loan() -> dict[str, Any]:
    """A fresh loan graph, free to be changed."""
    return loan_spec()


@pytest.fixture
def loan_manifests() -> Any:
    """Makes the manifests around a graph."""
    return manifests
