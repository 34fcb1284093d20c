"""A pinned workflow and its hash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import Manifest
from casework.values import dumps, loads

Make = Callable[..., list[Manifest]]


@pytest.fixture
def pinned(loan: dict[str, Any], loan_manifests: Make) -> PinnedWorkflow:
    loan["nodes"][1]["decisions"][0]["schema"] = {"properties": {"reason": {"enum": ["ok", None], "default": None}}}
    return admit(loan_manifests(loan, agent={"outputSchema": {"type": "object"}}), ["credit_check"])[0]


def test_a_bundle_survives_json(pinned: PinnedWorkflow) -> None:
    """AW-2. What is stored is what was applied, nulls inside schemas included."""
    again = PinnedWorkflow.from_plain(loads(dumps(pinned.to_plain())))
    assert again == pinned
    assert again.hash() == pinned.hash()


def test_the_hash_is_of_the_content(loan: dict[str, Any], loan_manifests: Make, pinned: PinnedWorkflow) -> None:
    """AW-2. Another graph, another hash; the order of manifests does not matter."""
    one = admit(loan_manifests(loan), ["credit_check"])[0]
    two = admit(loan_manifests(loan)[::-1], ["credit_check"])[0]
    assert one.hash() == two.hash()
    assert one.hash() != pinned.hash()
    assert len(one.hash()) == 64


def test_defaults_are_written_out(pinned: PinnedWorkflow) -> None:
    """AW-2. A run keeps the defaults it was started with."""
    assert pinned.to_plain()["workflow"]["spec"]["maxLoops"] == 50


def test_a_nodes_schema_is_its_own_or_its_agents(pinned: PinnedWorkflow) -> None:
    node = pinned.workflow.spec.nodes[0]
    assert pinned.output_schema(node) == {"type": "object"}
    assert pinned.output_schema(node.model_copy(update={"output_schema": {"type": "string"}})) == {"type": "string"}
    assert pinned.output_schema(pinned.workflow.spec.nodes[1]) is None


@pytest.mark.parametrize("change", [{"later": 1}, {"nodes": 5}])
def test_what_cannot_be_read_is_refused(pinned: PinnedWorkflow, change: dict[str, Any]) -> None:
    plain = pinned.to_plain()
    plain["workflow"]["spec"].update(change)
    with pytest.raises(ManifestError, match="no pinned workflow that this release can read"):
        PinnedWorkflow.from_plain(plain)
    with pytest.raises(ManifestError):
        PinnedWorkflow.from_plain({})
