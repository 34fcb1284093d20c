"""What admission asks of PARALLEL, MAP, SUBWORKFLOW and WAIT, and what is pinned."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest

from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.loading import load
from casework.graph.manifests import AiWorkflow, Manifest
from casework.values import dumps, loads

HEAD = {"apiVersion": "casework.dev/v1alpha1"}
CREDIT = {"properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": False}
TOOLS = {"credit_check": CREDIT}
NO_INPUT = {"properties": {}, "additionalProperties": False}
TREE = {
    "tree": {"name": "talk", "version": 1, "maxEvents": 5, "input": NO_INPUT},
    "agents": {},
    "providers": {},
}
Make = Callable[..., list[Manifest]]
TOOL = {"id": "credit", "type": "TOOL", "tool": "credit_check", "arguments": {"id": "{{ input.id }}"}}
AGENT = {"id": "look", "type": "AGENT", "agentRef": "underwriter"}
NODES: dict[str, dict[str, Any]] = {
    "p": {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": [TOOL, AGENT]},
    "m": {"id": "m", "type": "MAP", "outputKey": "all", "items": "input.docs", "branches": [
        {**TOOL, "arguments": {"id": "{{ item }}{{ index }}"}}]},
    "s": {"id": "s", "type": "SUBWORKFLOW", "outputKey": "made", "workflowRef": "other", "arguments": {"id": "x"}},
    "w": {"id": "w", "type": "WAIT", "duration": "PT1M"},
}  # fmt: skip
OTHER = {
    "initialNode": "w",
    "nodes": [NODES["w"]],
    "input": {"properties": {"id": {}}, "required": ["id"], "additionalProperties": False},
}


def workflow(name: str, *nodes: dict[str, Any], **more: Any) -> AiWorkflow:
    edges = [{"from": one["id"], "to": two["id"]} for one, two in pairwise(nodes)]
    spec = {"initialNode": nodes[0]["id"], "nodes": list(nodes), "edges": edges, **more}
    return AiWorkflow.model_validate({**HEAD, "metadata": {"name": name}, "spec": spec})


@pytest.fixture
def rest(loan: dict[str, Any], loan_manifests: Make) -> list[Manifest]:
    """The agent and provider of the loan, and a workflow to refer to."""
    return [
        *loan_manifests(loan)[1:],
        AiWorkflow.model_validate({**HEAD, "metadata": {"name": "other"}, "spec": OTHER}),
    ]


def refusal(manifests: list[Manifest]) -> str:
    with pytest.raises(ManifestError) as caught:
        admit(manifests, TOOLS, trees={"talk": TREE})
    return str(caught.value)


def test_each_type_is_admitted(rest: list[Manifest]) -> None:
    """AW-4, AW-5."""
    made = admit([workflow("big", *NODES.values()), *rest], TOOLS)[0]
    assert set(made.agents) == {"underwriter"}
    assert set(made.providers) == {"scripted"}


Change = Callable[[dict[str, Any]], Any]
REFUSED: list[tuple[str, Change, str]] = [
    ("p", lambda n: n.pop("branches"), "node 'p': it is of type PARALLEL and has no branches"),
    ("p", lambda n: n.update(branches=[]), "node 'p': it is of type PARALLEL and has no branches"),
    ("p", lambda n: n.pop("outputKey"), "node 'p': it is of type PARALLEL and has no outputKey"),
    ("p", lambda n: n.update(items="input.l"), "node 'p': a node of type PARALLEL takes no items"),
    ("p", lambda n: n.update(branches=[TOOL, TOOL]), "node 'p': 2 branches have the id 'credit'"),
    ("p", lambda n: n["branches"][0].pop("tool"), "node 'p': branch 'credit': it is of type TOOL and has no tool"),
    ("p", lambda n: n["branches"][0].update(tool="credit_chek"), "branch 'credit': tool: there is no registered tool"),
    ("p", lambda n: n["branches"][0].update(tool="credit_chek"), "Did you mean 'credit_check'?"),
    (
        "p",
        lambda n: n["branches"][0].update(arguments={}),
        "branch 'credit': arguments: tool 'credit_check' needs 'id'",
    ),
    ("p", lambda n: n["branches"][0].update(arguments={"id": "{{ x }}"}), "branch 'credit': arguments:"),
    ("p", lambda n: n["branches"][0].update(arguments={"id": "{{ item }}"}), "unknown name 'item'"),
    ("p", lambda n: n["branches"][1].update(agentRef="undrwriter"), "branch 'look': agentRef: there is no AiAgent"),
    ("p", lambda n: n["branches"][1].update(outputSchema={"type": "txt"}), "branch 'look': outputSchema:"),
    ("p", lambda n: n["branches"][1].update(tool="credit_check"), "branch 'look': a node of type AGENT takes no tool"),
    ("m", lambda n: n.pop("items"), "node 'm': it is of type MAP and has no items"),
    ("m", lambda n: n.update(items="  "), "node 'm': it is of type MAP and has no items"),
    ("m", lambda n: n.update(items="input."), "node 'm': items: Expression 'input.' does not parse"),
    ("m", lambda n: n.update(items="inptu.l"), "node 'm': items: Expression 'inptu.l' uses an unknown name"),
    ("m", lambda n: n.update(items="item"), "unknown name"),
    ("m", lambda n: n["branches"].append(AGENT), "node 'm': a MAP has one branch"),
    ("m", lambda n: n.update(outputKey="item"), "outputKey 'item' is what branches of a MAP call theirs"),
    ("s", lambda n: n.pop("workflowRef"), "node 's': it is of type SUBWORKFLOW and has no workflowRef"),
    ("s", lambda n: n.update(workflowRef="othr"), "workflowRef: there is no workflow or free tree 'othr'"),
    ("s", lambda n: n.update(workflowRef="othr"), "Did you mean 'other'?"),
    ("s", lambda n: n.update(arguments={}), "arguments: workflow 'other' needs 'id'"),
    ("s", lambda n: n.update(arguments={"id": 1, "idd": 2}), "workflow 'other' has no argument 'idd'"),
    ("s", lambda n: n.update(workflowRef="talk"), "workflow 'talk' has no argument 'id'; there are none"),
    ("s", lambda n: n.update(workflowRef="big"), "it leads back to this workflow (big -> big), so no run would end"),
    ("w", lambda n: n.pop("duration"), "node 'w': it is of type WAIT and has neither duration nor signal"),
    ("w", lambda n: n.update(arguments={}), "node 'w': a node of type WAIT takes no arguments"),
    ("w", lambda n: n.update(tool="credit_check"), "a node of type WAIT takes no tool"),
]


@pytest.mark.parametrize(("node", "change", "says"), REFUSED, ids=range(len(REFUSED)))
def test_refused_is(node: str, change: Change, says: str, rest: list[Manifest]) -> None:
    """AW-5. Each type's fields, and all checks in branches too, naming node and branch."""
    nodes = deepcopy(NODES)
    change(nodes[node])
    assert says in refusal([workflow("big", *nodes.values()), *rest])


def test_decisions_in_a_branch_end_no_run(rest: list[Manifest]) -> None:
    """AW-5. A branch has no edges, so its decisions need none and take no outcome."""
    ask: dict[str, Any] = {"id": "ask", "type": "HUMAN_APPROVAL", "decisions": [{"name": "yes"}, {"name": "no"}]}
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": [ask]}
    assert admit([workflow("big", node), *rest], TOOLS)
    ask["decisions"][0]["outcome"] = "approved"
    assert "branch 'ask': decision 'yes': in a branch it ends no run" in refusal([workflow("big", node), *rest])
    ask["decisions"] = [{"name": "yes"}, {"name": "yes"}]
    assert "branch 'ask': several decisions are named 'yes'" in refusal([workflow("big", node), *rest])


def test_edges_out_of_every_open_type_are_checked(rest: list[Manifest]) -> None:
    """AW-5. As those of AGENT and TOOL."""
    for node in NODES.values():
        edges = [{"from": node["id"], "to": "end", "condition": "inptu.x"}]
        assert "uses an unknown name" in refusal([workflow("big", node, edges=edges), *rest])


def sub(name: str, *refs: str) -> AiWorkflow:
    branches = [{"id": f"b{at}", "type": "SUBWORKFLOW", "workflowRef": ref} for at, ref in enumerate(refs)]
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": branches}
    return workflow(name, node if refs else NODES["w"])


def test_a_circle_of_references_is_refused() -> None:
    """AW-5. Through branches too, each workflow of the circle told its way round."""
    said = refusal([sub("a", "b"), sub("b", "x", "c"), sub("c", "a"), sub("x")])
    assert (
        "AiWorkflow 'a': node 'p': branch 'b0': workflowRef: it leads back to this workflow (a -> b -> c -> a)" in said
    )
    assert "(b -> c -> a -> b)" in said
    assert "(c -> a -> b -> c)" in said
    assert "AiWorkflow 'x'" not in said


def test_a_chain_and_a_diamond_of_references_are_no_circle() -> None:
    """AW-5. A thousand deep, and exponentially many ways."""
    chain = [sub(f"c{i}", f"c{i + 1}") for i in range(1000)]
    diamond = [sub(f"d{i}", f"d{i + 1}", f"d{i + 1}") for i in range(30)]
    made = admit([*chain, sub("c1000"), *diamond, sub("d30")], TOOLS)
    assert len(made[0].workflows) == 1000
    assert len(made[1001].workflows) == 30


def test_what_is_referred_to_is_pinned_whole() -> None:
    """AW-2, AW-4. Transitively, workflows and free trees; each has the hash that it is published under."""
    made = {
        each.name: each for each in admit([sub("a", "b", "talk"), sub("b", "c"), sub("c")], TOOLS, trees={"talk": TREE})
    }
    assert set(made["a"].workflows) == {"b", "c", "talk"}
    assert made["a"].sub_bundle("talk") == TREE
    again = PinnedWorkflow.from_plain(loads(dumps(made["a"].to_plain())))
    assert again == made["a"]
    assert again.hash() == made["a"].hash()
    for name in ("b", "c"):
        assert PinnedWorkflow.from_plain(again.sub_bundle(name)).hash() == made[name].hash()
    with pytest.raises(KeyError):
        made["b"].sub_bundle("talk")


def test_a_change_below_changes_the_hash_above() -> None:
    """AW-2. A run keeps the sub-workflows it was started with."""
    one = admit([sub("a", "b"), sub("b")], TOOLS)[0]
    two = admit([sub("a", "b"), workflow("b", {**NODES["w"], "duration": 5})], TOOLS)[0]
    assert one.workflow == two.workflow
    assert one.hash() != two.hash()


def test_a_bundle_without_references_is_as_it_always_was(rest: list[Manifest]) -> None:
    """AW-2. So its hash, and the version that is published, stay."""
    (made,) = [each for each in admit([workflow("x", NODES["p"]), *rest], TOOLS) if each.name == "x"]
    assert set(made.to_plain()) == {"workflow", "agents", "providers"}


FILE = """apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: big}
spec:
  initialNode: p
  nodes:
    - id: p
      type: PARALLEL
      outputKey: all
      branches:
        - id: one
          type: TOOL
          tool: credit_chek
        - id: two
          type: WAIT
          duration: 1
          signal: go
          agentRef: nobody
    - id: q
      type: TOOL
      tool: credit_check
      outputKey: q
      arguments:
        idd: 1
        id: 2
  edges:
    - from: p
      to: qq
    - from: q
      to: end
      condition: al.one == 1
"""


def test_problems_name_file_line_and_path() -> None:
    """AW-1, AW-5. Where the manifest came from a file; down to the field, with the near name."""
    lines = refusal(load(FILE, "big.yaml")).splitlines()
    places = [line.split(": AiWorkflow")[0] for line in lines]
    assert places == [
        "6 problems:",
        "big.yaml:13: spec.nodes[0].branches[0].tool",
        "big.yaml:18: spec.nodes[0].branches[1].agentRef",
        "big.yaml:18: spec.nodes[0].branches[1].agentRef",
        "big.yaml:24: spec.nodes[1].arguments.idd",
        "big.yaml:31: spec.edges[1].condition",
        "big.yaml:28: spec.edges[0].to",
    ]
