"""Which nodes of a graph may share an activity."""

from __future__ import annotations

from typing import Any

import pytest

from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import AiWorkflow
from casework.graph.segments import chained, quick_tools
from casework.values import dumps, loads

HEAD = {"apiVersion": "casework.dev/v1alpha1", "metadata": {"name": "w"}}
QUICK = ("a", "b")


def workflow(*edges: str, **tools: str) -> AiWorkflow:
    """Nodes in the order given: a name of a tool, or a type; edges as `x>y`, with a condition as `x>y?true`."""
    nodes: list[dict[str, Any]] = []
    for name, what in tools.items():
        kinds: dict[str, dict[str, Any]] = {
            "CONDITION": {"type": "CONDITION", "expression": "input.n > 1"},
            "WAIT": {"type": "WAIT", "duration": 1},
        }
        nodes.append({"id": name, **kinds.get(what, {"type": "TOOL", "tool": what, "outputKey": name})})
    made = []
    for edge in edges:
        source, _, rest = edge.partition(">")
        target, _, condition = rest.partition("?")
        made.append({"from": source, "to": target, **({"condition": condition} if condition else {})})
    spec = {"initialNode": next(iter(tools)), "nodes": nodes, "edges": made}
    return AiWorkflow.model_validate({**HEAD, "spec": spec})


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (workflow("x>y", x="a", y="b"), {"x"}),
        (workflow(x="a"), set()),
        (workflow("x>y", x="a", y="slow"), set()),
        (workflow("x>y", "y>z", x="a", y="WAIT", z="b"), set()),
        (workflow("c>x?true", "c>end?false", "x>c", c="CONDITION", x="a"), {"c", "x"}),
        (workflow("c>x?true", "c>end?false", c="CONDITION", x="a"), set()),
        (workflow("w>x", "x>y", "y>w", w="WAIT", x="a", y="b"), {"x"}),
        (workflow("x>x?input.n < 2", "x>end", x="a"), {"x"}),
        (workflow("x>y?false", "x>end", "y>end", x="a", y="b"), set()),
    ],
)
def test_a_chain_is_of_quick_nodes_and_comes_to_two_tools(made: AiWorkflow, expected: set[str]) -> None:
    """AW-11. Only CONDITIONs and quick TOOLs are in a chain, and it begins where two TOOLs can be reached."""
    assert chained(made.spec, QUICK) == expected


def test_a_bundle_names_the_quick_tools_of_its_chains() -> None:
    """AW-11, AW-2. They are a part of the version; where there is no chain the hash is as it always was."""
    chain = workflow("x>y", "y>z", x="a", y="b", z="slow")
    pinned = admit([chain], ["a", "b", "slow"], quick=QUICK)[0]
    assert pinned.quick == ("a", "b") == quick_tools(chain.spec, QUICK)
    again = PinnedWorkflow.from_plain(loads(dumps(pinned.to_plain())))
    assert (again, again.hash()) == (pinned, pinned.hash())
    assert admit([chain], ["a", "b", "slow"])[0].hash() != pinned.hash()
    alone = workflow("x>y", x="a", y="slow")
    assert admit([alone], ["a", "slow"], quick=QUICK)[0].hash() == admit([alone], ["a", "slow"])[0].hash()
    assert "quick" not in admit([alone], ["a", "slow"], quick=QUICK)[0].to_plain()
