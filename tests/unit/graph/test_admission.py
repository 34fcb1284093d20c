"""What admission refuses, and that it says where."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.manifests import LlmProvider, Manifest

TOOLS = ["credit_check", "income_verification"]
Loan = dict[str, Any]
Make = Callable[..., list[Manifest]]

TOOL = {"id": "fetch", "type": "TOOL", "tool": "credit_check", "outputKey": "credit"}
CONDITION = {"id": "rich", "type": "CONDITION", "expression": "input.amount > 5"}


def edge(source: str, target: str, condition: Any = "", **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, "condition": condition, **more}


def refusal(manifests: list[Manifest], **more: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        admit(manifests, TOOLS, **more)
    return str(caught.value)


def test_the_loan_is_admitted(loan: Loan, loan_manifests: Make) -> None:
    (pinned,) = admit(loan_manifests(loan), TOOLS, scripts=["loan"])
    assert pinned.name == "loan"
    assert set(pinned.agents) == {"underwriter"}
    assert set(pinned.providers) == {"scripted"}


Change = Callable[[Loan], Any]
REFUSED: list[tuple[str, Change, str]] = [
    ("initial", lambda g: g.update(initialNode="underwrit"), "initialNode: there is no node 'underwrit'"),
    ("initial near", lambda g: g.update(initialNode="underwrit"), "Did you mean 'underwrite'?"),
    ("twice", lambda g: g["nodes"].append(deepcopy(g["nodes"][0])), "node 'underwrite': 2 nodes have this id"),
    ("end", lambda g: g["nodes"][0].update(id="end"), "node 'end': 'end' is the target that ends the run"),
    ("to", lambda g: g["edges"][0].update(to="decison"), "to: there is no node 'decison'"),
    ("to near", lambda g: g["edges"][0].update(to="decison"), "Did you mean 'decision'?"),
    ("from", lambda g: g["edges"][0].update({"from": "undrwrite"}), "from: there is no node 'undrwrite'"),
    ("from end", lambda g: g["edges"].append(edge("end", "decision")), "from: there is no node 'end'"),
    ("agentRef", lambda g: g["nodes"][0].pop("agentRef"), "node 'underwrite': it is of type AGENT and has no agentRef"),
    (
        "outputKey",
        lambda g: g["nodes"][0].pop("outputKey"),
        "node 'underwrite': it is of type AGENT and has no outputKey",
    ),
    ("agent", lambda g: g["nodes"][0].update(agentRef="undrwriter"), "there is no AiAgent 'undrwriter'"),
    ("agent near", lambda g: g["nodes"][0].update(agentRef="undrwriter"), "Did you mean 'underwriter'?"),
    ("reserved", lambda g: g["nodes"][0].update(outputKey="input"), "outputKey 'input'"),
    ("reserved 2", lambda g: g["nodes"][0].update(outputKey="in"), "outputKey 'in'"),
    ("foreign", lambda g: g["nodes"][0].update(tool="credit_check"), "a node of type AGENT takes no tool"),
    ("template", lambda g: g["nodes"][0].update(inputTemplate="{{ input"), "node 'underwrite': inputTemplate:"),
    ("template name", lambda g: g["nodes"][0].update(inputTemplate="{{ inptu }}"), "unknown name 'inptu'"),
    ("schema", lambda g: g["nodes"][0].update(outputSchema={"type": "txt"}), "node 'underwrite': outputSchema:"),
    ("remote", lambda g: g["nodes"][0].update(outputSchema={"$ref": "http://x/y"}), "leads outside"),
    ("pattern", lambda g: g["nodes"][0].update(outputSchema={"pattern": "("}), "does not parse"),
    ("input", lambda g: g.update(input={"type": "array"}), "input: a run's input is an object"),
    ("input schema", lambda g: g.update(input={"properties": 3}), "input: this is no JSON Schema"),
    (
        "no decisions",
        lambda g: g["nodes"][1].pop("decisions"),
        "node 'decision': it is of type HUMAN_APPROVAL and has no",
    ),
    ("empty decisions", lambda g: g["nodes"][1].update(decisions=[]), "node 'decision': it is of type HUMAN_APPROVAL"),
    ("decision", lambda g: g["edges"][1].update(condition="aprove"), "condition 'aprove', which is no decision"),
    ("decision near", lambda g: g["edges"][1].update(condition="aprove"), "Did you mean 'approve'?"),
    ("no condition", lambda g: g["edges"][1].pop("condition"), "condition '', which is no decision"),
    ("no edge", lambda g: g["edges"].pop(3), "decision 'more_info' has no edge"),
    ("two edges", lambda g: g["edges"].append(edge("decision", "end", "approve")), "has several edges"),
    ("same decision", lambda g: g["nodes"][1]["decisions"].append({"name": "approve"}), "several decisions are named"),
    (
        "decision schema",
        lambda g: g["nodes"][1]["decisions"][0].update(schema={"type": 5}),
        "node 'decision': decision 'approve': schema:",
    ),
    ("unreachable", lambda g: g["nodes"].append(TOOL), "node 'fetch': no way leads here from 'underwrite'"),
    (
        "cycle",
        lambda g: g["edges"].__setitem__(0, edge("underwrite", "underwrite")),
        "a cycle with no exit ('underwrite')",
    ),
    ("never", lambda g: g["edges"].__setitem__(0, edge("underwrite", "decision", False)), "no way leads"),
    (
        "only by failing",
        lambda g: g.update(
            nodes=[g["nodes"][0]], edges=[edge("underwrite", "underwrite"), edge("underwrite", "end", onError=True)]
        ),
        "a cycle with no exit",
    ),
    (
        "two onError",
        lambda g: g["edges"].extend([edge("underwrite", "end", onError=True)] * 2),
        "several onError edges",
    ),
    ("onError if", lambda g: g["edges"].append(edge("underwrite", "end", "true", onError=True)), "has no condition"),
    ("outcome on", lambda g: g["edges"][0].update(outcome="approved"), "outcome: the run does not end here"),
    ("outcome of", lambda g: g["edges"][1].update(outcome="approved"), "a decision has its own, in `decisions`"),
    (
        "outcome near",
        lambda g: g["edges"].append(edge("underwrite", "end", onError=True, outcome="aproved")),
        "no decision has 'aproved'; there are: approved, declined. Did you mean 'approved'?",
    ),
    ("condition", lambda g: g["edges"][0].update(condition="recommendation ="), "edge from 'underwrite' to 'decision'"),
    ("condition name", lambda g: g["edges"][0].update(condition="recomendation.x"), "unknown name"),
    ("condition type", lambda g: g["edges"][0].update(condition="1 + 1"), "gives INT, not true or false"),
]


@pytest.mark.parametrize(("change", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused_is(loan: Loan, loan_manifests: Make, change: Change, says: str) -> None:
    """AW-5. Admission refuses, naming the node."""
    change(loan)
    assert says in refusal(loan_manifests(loan))


def with_first(loan: Loan, node: dict[str, Any], *edges: dict[str, Any]) -> Loan:
    return {
        **loan,
        "initialNode": node["id"],
        "nodes": [node, *loan["nodes"]],
        "edges": [*edges, *loan["edges"]],
    }


def test_tool_and_condition_nodes_are_admitted(loan: Loan, loan_manifests: Make) -> None:
    graph = with_first(loan, {**TOOL, "arguments": {"id": "{{ input.id }}"}}, edge("fetch", "underwrite"))
    graph = with_first(graph, CONDITION, edge("rich", "fetch", True), edge("rich", "end", False))
    assert admit(loan_manifests(graph), TOOLS)


@pytest.mark.parametrize(
    ("node", "edges", "says"),
    [
        ({**TOOL, "tool": "credit_chek"}, [("", "underwrite")], "Did you mean 'credit_check'?"),
        ({**TOOL, "tool": None}, [("", "underwrite")], "node 'fetch': it is of type TOOL and has no tool"),
        ({**TOOL, "outputKey": None}, [("", "underwrite")], "node 'fetch': it is of type TOOL and has no outputKey"),
        ({**TOOL, "arguments": {"a": ["{{ nope }}"]}}, [("", "underwrite")], "node 'fetch': arguments:"),
        ({**CONDITION, "expression": None}, [(True, "underwrite"), (False, "end")], "CONDITION and has no expression"),
        ({**CONDITION, "expression": "  "}, [(True, "underwrite"), (False, "end")], "CONDITION and has no expression"),
        ({**CONDITION, "expression": "input."}, [(True, "underwrite"), (False, "end")], "node 'rich': expression:"),
        (CONDITION, [(True, "underwrite")], "node 'rich': a CONDITION needs an edge with condition false"),
        (CONDITION, [(False, "underwrite")], "node 'rich': a CONDITION needs an edge with condition true"),
        (CONDITION, [("", "underwrite"), (True, "underwrite"), (False, "end")], "not ''"),
        (CONDITION, [(True, "underwrite"), (True, "end"), (False, "end")], "several edges with condition true"),
    ],
)
def test_refused_are_nodes(
    loan: Loan, loan_manifests: Make, node: dict[str, Any], edges: list[tuple[Any, str]], says: str
) -> None:
    """AW-5. TOOL and CONDITION nodes with what they need, or not at all."""
    node = {name: value for name, value in node.items() if value is not None}
    graph = with_first(loan, node, *[edge(node["id"], target, condition) for condition, target in edges])
    assert says in refusal(loan_manifests(graph))


def test_an_agents_tools_are_registered(loan: Loan, loan_manifests: Make) -> None:
    """AW-5, AW-17. A tool on an agent's list that nobody registered is refused."""
    said = refusal(loan_manifests(loan, agent={"tools": ["credit_chek"]}))
    assert "AiAgent 'underwriter': tools: there is no registered tool 'credit_chek'" in said
    assert "Did you mean 'credit_check'?" in said
    assert "stands there twice" in refusal(loan_manifests(loan, agent={"tools": ["credit_check"] * 2}))


def test_an_agents_provider_is_there(loan: Loan, loan_manifests: Make) -> None:
    assert "there is no LlmProvider 'scriptd'" in refusal(loan_manifests(loan, agent={"provider": "scriptd"}))


def test_an_agent_has_a_model(loan: Loan, loan_manifests: Make) -> None:
    workflow, agent, _ = loan_manifests(loan, agent={"provider": "local"})
    provider = LlmProvider.model_validate({"metadata": {"name": "local"}, "spec": {"type": "openai"}})
    assert "has no defaultModel" in refusal([workflow, agent, provider])


def test_a_script_is_one_of_the_apps(loan: Loan, loan_manifests: Make) -> None:
    assert "there is no script 'loan'; there are laon" in refusal(loan_manifests(loan), scripts=["laon"])


def test_a_name_is_used_once(loan: Loan, loan_manifests: Make) -> None:
    assert "AiWorkflow 'loan': the name is used twice" in refusal([*loan_manifests(loan), *loan_manifests(loan)])


def test_all_problems_are_told_together(loan: Loan, loan_manifests: Make) -> None:
    loan["initialNode"] = "x"
    loan["nodes"][0]["agentRef"] = "y"
    loan["edges"][1]["condition"] = "z"
    said = refusal(loan_manifests(loan))
    assert said.splitlines()[0] == "4 problems:"


def test_nothing_gives_nothing() -> None:
    assert admit([], []) == []


def test_a_second_approval_is_admitted(loan: Loan, loan_manifests: Make) -> None:
    """AW-8. The manifest edited as a new user would."""
    loan["nodes"].append(
        {"id": "senior", "type": "human_approval", "decisions": [{"name": "approve", "outcome": "approved"}]}
    )
    loan["edges"][1]["to"] = "senior"
    loan["edges"].append(edge("senior", "end", "approve"))
    assert admit(loan_manifests(loan), TOOLS)


def test_a_graph_of_a_thousand_nodes_is_admitted_quickly(loan_manifests: Make) -> None:
    nodes = [{**TOOL, "id": f"n{i}"} for i in range(1000)]
    edges = [edge(f"n{i}", f"n{i + 1}", "input.x > 1") for i in range(999)]
    edges += [edge(f"n{i}", "end") for i in range(1000)]
    began = time.monotonic()
    assert admit(loan_manifests({"initialNode": "n0", "nodes": nodes, "edges": edges}), TOOLS)
    assert time.monotonic() - began < 5


CREDIT = {
    "properties": {"applicant_id": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["applicant_id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"applicant": "x", "applicant_id": "y"}, "tool 'credit_check' has no argument 'applicant'; there are"),
        ({"applicant": "x", "applicant_id": "y"}, "Did you mean 'applicant_id'?"),
        ({"depth": 1}, "tool 'credit_check' needs 'applicant_id'. Add it."),
        (None, "tool 'credit_check' needs 'applicant_id'. Add it."),
    ],
)
def test_arguments_of_a_tool_node_fit_its_tool(arguments: Any, says: str, loan: Loan, loan_manifests: Make) -> None:
    """AW-17. What the tool would refuse at every run is refused before the first."""
    node = {**TOOL, **({} if arguments is None else {"arguments": arguments})}
    loan["nodes"].append(node)
    loan["edges"][0] = edge("underwrite", "fetch")
    loan["edges"].append(edge("fetch", "decision"))
    with pytest.raises(ManifestError) as caught:
        admit(loan_manifests(loan), {"credit_check": CREDIT, "income_verification": None})
    assert f"node 'fetch': arguments: {says}" in str(caught.value) or says in str(caught.value)
    node["arguments"] = {"applicant_id": "{{ input.id }}"}
    assert admit(loan_manifests(loan), {"credit_check": CREDIT})


@pytest.mark.parametrize(
    ("kind", "near"), [("scriptd", "'scripted'"), ("Scripted", "'scripted'"), ("opnai", "'openai'")]
)
def test_a_misspelt_provider_type_is_suggested(kind: str, near: str) -> None:
    """AW-5. `script` stands there, so a known type was meant."""
    with pytest.raises(ValueError, match=f"Did you mean {near}"):
        LlmProvider.model_validate({"metadata": {"name": "p"}, "spec": {"type": kind, "script": "loan"}})
