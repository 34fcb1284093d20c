"""Random graphs of all node types, admitted or not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider

HEAD = {"apiVersion": "casework.dev/v1alpha1"}
AGENT = AiAgent.model_validate({**HEAD, "metadata": {"name": "a"}, "spec": {"provider": "p"}})
PROVIDER = LlmProvider.model_validate(
    {**HEAD, "metadata": {"name": "p"}, "spec": {"type": "openai", "defaultModel": "m"}}
)
SUB = AiWorkflow.model_validate(
    {
        **HEAD,
        "metadata": {"name": "sub"},
        "spec": {
            "initialNode": "t",
            "nodes": [
                {"id": "t", "type": "TOOL", "tool": "t", "outputKey": "r"},
                {"id": "w", "type": "WAIT", "duration": 0},
            ],
            "edges": [{"from": "t", "to": "w"}],
        },
    }
)
DECISIONS = ("approve", "reject", "more_info")
_CONDITIONS = st.lists(
    st.sampled_from(("input.n > 3", "has(input.nothing)", "false", "input.n < 2", "true", "", "input.nothing > 1")),
    max_size=2,
)
WORK: dict[str, list[dict[str, Any]]] = {
    "AGENT": [{"agentRef": "a"}, {"agentRef": "a", "inputTemplate": "{{ input.n }}"}],
    "TOOL": [{"tool": "t"}],
    "HUMAN_APPROVAL": [{"decisions": [{"name": name} for name in DECISIONS]}],
    "SUBWORKFLOW": [{"workflowRef": "sub"}],
    "WAIT": [{"duration": 1}, {"signal": "go"}, {"duration": "PT1S", "signal": "go"}],
}
ITEMS = ("input.l", "input.l", "input.l.map(x, x + 1)", "[]", "input.n", "input.nothing")
PLAIN = ("AGENT", "CONDITION", "HUMAN_APPROVAL", "TOOL")
ALL = ("PARALLEL", "MAP", "TOOL", "PARALLEL", "MAP", "SUBWORKFLOW", "WAIT", *PLAIN)


@st.composite
def branches(draw: st.DrawFn, most: int) -> list[dict[str, Any]]:
    kinds = draw(st.lists(st.sampled_from(sorted(WORK)), min_size=1, max_size=most))
    return [{"id": f"b{at}", "type": kind, **draw(st.sampled_from(WORK[kind]))} for at, kind in enumerate(kinds)]


@st.composite
def nodes(draw: st.DrawFn, name: str, kind: str) -> dict[str, Any]:
    node = {"id": name, "type": kind, "outputKey": f"{name}_out"}
    if kind == "CONDITION":
        expression = draw(st.sampled_from(("input.n > 3", "input.n > 1", "input.nothing > 1")))
        return {"id": name, "type": kind, "expression": expression}
    if kind == "HUMAN_APPROVAL":
        return {"id": name, "type": kind, "decisions": [{"name": made, "outcome": made} for made in DECISIONS]}
    if kind == "PARALLEL":
        return {**node, "branches": draw(branches(3)), "maxParallel": draw(st.integers(1, 3))}
    if kind == "MAP":
        return {**node, "branches": draw(branches(1)), "items": draw(st.sampled_from(ITEMS))}
    return {**node, **draw(st.sampled_from(WORK[kind]))}


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[str, ...] = ALL, most: int = 6) -> dict[str, Any]:
    """The spec of a graph, as a manifest says it; often one that is refused."""
    ids = [f"n{i}" for i in range(draw(st.integers(1, most)))]
    targets = st.sampled_from([*ids, "end"])
    wild = draw(st.integers(0, 9)) == 7
    made: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for name, after in zip(ids, [*ids[1:], "end"], strict=True):
        kind = draw(st.sampled_from(kinds))
        made.append(draw(nodes(name, kind)))
        names = {"CONDITION": ["true", "false"], "HUMAN_APPROVAL": list(DECISIONS)}.get(kind)
        ways = [(condition, draw(targets)) for condition in names or draw(_CONDITIONS)]
        if not wild:  # one way leads on, so that most graphs are admitted
            ways = [*ways, ("", after)] if names is None else [(ways[0][0], after), *ways[1:]]
        edges += [{"from": name, "to": target, "condition": condition} for condition, target in ways]
        if draw(st.integers(0, 2)):
            edges.append({"from": name, "to": draw(targets), "onError": True})
    return {"initialNode": "n0", "nodes": made, "edges": edges, "maxLoops": draw(st.integers(3, 12))}


def admitted(graph: dict[str, Any]) -> PinnedWorkflow:
    """The graph as a pinned workflow.

    Raises:
        ManifestError: it is refused.
    """
    workflow = AiWorkflow.model_validate({**HEAD, "metadata": {"name": "w"}, "spec": graph})
    return admit([workflow, SUB, AGENT, PROVIDER], ["t"])[0]
