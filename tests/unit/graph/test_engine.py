"""The pure engine, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from casework.errors import StateError
from casework.graph.engine import (
    Answered,
    AwaitDecision,
    Command,
    Complete,
    Decided,
    EngineState,
    Evaluate,
    Evaluated,
    Fail,
    NodeFailed,
    Outcome,
    Returned,
    RunAgent,
    RunTool,
    advance,
    evaluate,
    pending,
    refusals,
    start,
)
from casework.graph.manifests import AiWorkflowSpec

INPUT = {"amount": 9000}


def walk(spec: AiWorkflowSpec, *outcomes: Outcome, turn_limit: int = 5) -> tuple[EngineState, list[Command]]:
    state, command = start(spec, INPUT, turn_limit=turn_limit)
    commands = [command]
    for outcome in outcomes:
        state, command = advance(spec, state, outcome)
        commands.append(command)
    return state, commands


def graph(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], **more: Any) -> AiWorkflowSpec:
    return AiWorkflowSpec.model_validate({"initialNode": nodes[0]["id"], "nodes": nodes, "edges": edges, **more})


def agent(name: str) -> dict[str, Any]:
    return {"id": name, "type": "AGENT", "agentRef": "a", "outputKey": f"{name}_out"}


def tool(name: str) -> dict[str, Any]:
    return {"id": name, "type": "TOOL", "tool": "t", "outputKey": f"{name}_out"}


def edge(source: str, target: str, condition: Any = "", **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, "condition": condition, **more}


def approval(name: str, *decisions: str) -> dict[str, Any]:
    made = [{"name": decision, "outcome": f"{decision}d"} for decision in decisions]
    return {"id": name, "type": "HUMAN_APPROVAL", "decisions": made}


def said(decision: str, reason: str = "") -> Decided:
    return Decided(decision, reason, "ann")


@pytest.fixture
def spec(loan: dict[str, Any]) -> AiWorkflowSpec:
    return AiWorkflowSpec.model_validate(loan)


def test_a_loan_is_assessed_and_approved(spec: AiWorkflowSpec) -> None:
    """AW-6, AW-7. The engine says what is due; the decision's edge ends the run with its outcome."""
    state, commands = walk(spec, Answered({"recommend": "refer"}), said("approve", "fine"))
    assert commands == [
        RunAgent("underwrite", 1, 1, None, render=True),
        AwaitDecision("decision", 1, ("approve", "reject", "more_info"), {}),
        Complete("approved", {"recommend": "refer"}),
    ]
    assert state.ended == "COMPLETED"
    assert state.context["review"] == {"decision": {"decision": "approve", "reason": "fine", "reviewer": "ann"}}


def test_more_info_starts_the_next_turn_with_the_reviewers_words(spec: AiWorkflowSpec) -> None:
    """DA-13. The words are said, the template is not rendered again; a new visit asks again."""
    state, commands = walk(spec, Answered("refer"), said("more_info", "Check the job."), Answered("approve"))
    assert commands[2] == RunAgent("underwrite", 2, 2, "Check the job.", render=False)
    assert commands[3] == AwaitDecision("decision", 2, ("approve", "reject", "more_info"), {})
    assert (state.turn, state.loop_count, state.answer) == (2, 4, "approve")


def test_more_info_without_words_renders_the_template_again(spec: AiWorkflowSpec) -> None:
    _, commands = walk(spec, Answered("refer"), said("more_info", "  "))
    assert commands[2] == RunAgent("underwrite", 2, 2, None, render=True)


def test_words_for_an_agent_on_its_first_visit_come_beside_its_template() -> None:
    spec = graph([approval("ask", "go"), agent("a")], [edge("ask", "a", "go")])
    _, commands = walk(spec, said("go", "be brief"))
    assert commands[1] == RunAgent("a", 1, 1, "be brief", render=True)


def test_at_the_turn_limit_more_info_is_refused_with_the_reason(spec: AiWorkflowSpec) -> None:
    """DA-14. At the limit the reviewer gets what there is, and only decisions that start no turn."""
    state, commands = walk(spec, Answered("x"), turn_limit=1)
    reason = "turn limit 1 is reached: approve or reject"
    assert commands[1] == AwaitDecision("decision", 1, ("approve", "reject", "more_info"), {"more_info": reason})
    with pytest.raises(StateError, match="turn limit 1"):
        advance(spec, state, said("more_info", "why"))
    assert refusals(spec, state, turn_limit=2) == {}


def test_an_agent_beyond_the_turn_limit_fails_the_run() -> None:
    """DA-14. Without a reviewer between, the limit ends the run, with the reason."""
    spec = graph([agent("a"), agent("b")], [edge("a", "b")])
    state, commands = walk(spec, Answered(1), turn_limit=1)
    assert commands[1] == Fail("turn limit 1 is reached before node 'b'", "a")
    assert state.ended == "FAILED"


def test_the_loop_limit_counts_visits() -> None:
    """AW-6. With maxLoops 3 there are three visits; the fourth is the failure."""
    spec = graph([tool("t")], [edge("t", "end", "input.amount < 0"), edge("t", "t")], maxLoops=3)
    _, commands = walk(spec, Returned(1), Returned(2), Returned(3))
    assert commands == [RunTool("t", 1), RunTool("t", 2), RunTool("t", 3), Fail(commands[3].reason, "t")]  # type: ignore[union-attr]  # the last is a Fail
    assert "loop limit 3 is reached" in commands[3].reason  # type: ignore[union-attr]  # see above


def test_the_loop_limit_is_50_unless_given(spec: AiWorkflowSpec) -> None:
    """AW-6. Default 50."""
    assert spec.max_loops == 50


def test_tool_and_agent_outputs_stand_under_their_keys() -> None:
    """AW-7. What a node brings is stored under its outputKey."""
    spec = graph([tool("t"), agent("a")], [edge("t", "a"), edge("a", "end")])
    state, commands = walk(spec, Returned({"n": 1}), Answered("done"))
    assert state.context == {"input": INPUT, "review": {}, "errors": {}, "t_out": {"n": 1}, "a_out": "done"}
    assert commands[-1] == Complete(None, "done")


def test_without_edges_a_node_is_the_end() -> None:
    """AW-7. No edges: COMPLETED."""
    _, commands = walk(graph([tool("t")], []), Returned(4))
    assert commands[1] == Complete(None, 4)


def test_no_matching_edge_is_an_error() -> None:
    """AW-7. Edges are there and none matches: FAILED, never a silent end."""
    spec = graph([tool("t"), tool("u")], [edge("t", "u", "t_out > 5"), edge("t", "u", False)])
    _, commands = walk(spec, Returned(1))
    assert commands[1] == Fail("no edge out of node 't' matches 't_out > 5', 'false'; it gave 1", "t")


def test_of_many_conditions_the_first_are_told() -> None:
    """AW-7. A reason stays short whatever the conditions and the value are."""
    tried = [edge("t", "u", f"t_out == '{number}'") for number in range(9)]
    _, commands = walk(graph([tool("t"), tool("u")], tried), Returned("x" * 500))
    assert isinstance(commands[1], Fail)
    assert "'t_out == \\'0\\''" in commands[1].reason or "t_out == '0'" in commands[1].reason
    assert "and 4 more; it gave 'xxx" in commands[1].reason
    assert len(commands[1].reason) < 400


def test_the_first_matching_edge_is_followed() -> None:
    """AW-7. In the order of the manifest."""
    edges = [edge("t", "a", "t_out > 5"), edge("t", "b", "t_out > 1"), edge("t", "a", True)]
    spec = graph([tool("t"), tool("a"), tool("b")], edges)
    assert walk(spec, Returned(9))[1][1] == RunTool("a", 1)
    assert walk(spec, Returned(2))[1][1] == RunTool("b", 1)
    assert walk(spec, Returned(0))[1][1] == RunTool("a", 1)


def test_an_edge_whose_expression_fails_ends_the_run() -> None:
    spec = graph([tool("t")], [edge("t", "end", "t_out.missing == 1")])
    command = walk(spec, Returned({}))[1][1]
    assert isinstance(command, Fail)
    assert "missing" in command.reason


CONDITION = {"id": "c", "type": "CONDITION", "expression": "input.amount > 100"}
BRANCHES = [edge("c", "a", True), edge("c", "b", False)]


def test_a_condition_follows_its_branch() -> None:
    """AW-7. True and false each have their edge."""
    spec = graph([CONDITION, tool("a"), tool("b")], BRANCHES)
    state, command = start(spec, INPUT)
    assert command == Evaluate("c", 1, "input.amount > 100")
    assert isinstance(command, Evaluate)
    assert evaluate(command, state) == Evaluated(True)
    assert walk(spec, Evaluated(True))[1][1] == RunTool("a", 1)
    assert walk(spec, Evaluated(False))[1][1] == RunTool("b", 1)


@pytest.mark.parametrize("value", [None, 0, 1, "true", "", [], {}])
def test_a_condition_that_is_neither_true_nor_false_fails(value: Any) -> None:
    """AW-7. Anything else is an error, never a silent false."""
    command = walk(graph([CONDITION, tool("a"), tool("b")], BRANCHES), Evaluated(value))[1][1]
    assert isinstance(command, Fail)
    assert "not true or false" in command.reason


def test_an_expression_that_fails_is_the_nodes_failure() -> None:
    spec = graph([{**CONDITION, "expression": "input.nothing > 1"}, tool("a"), tool("b")], BRANCHES)
    state, command = start(spec, INPUT)
    assert isinstance(command, Evaluate)
    outcome = evaluate(command, state)
    assert isinstance(outcome, NodeFailed)
    assert "nothing" in outcome.error


def test_a_failed_node_fails_the_run_with_its_error() -> None:
    """AW-8. A failure never flows on as an answer."""
    state, commands = walk(graph([tool("t"), tool("u")], [edge("t", "u")]), NodeFailed("model is gone"))
    assert commands[1] == Fail("model is gone", "t")
    assert "t_out" not in state.context


def test_an_on_error_edge_catches_the_failure() -> None:
    """AW-8. onError edges may catch it; what follows can read why."""
    spec = graph([tool("t"), tool("u")], [edge("t", "end"), edge("t", "u", onError=True)])
    state, commands = walk(spec, NodeFailed("gone"))
    assert commands[1] == RunTool("u", 1)
    assert state.context["errors"] == {"t": "gone"}


def test_an_on_error_edge_is_not_followed_on_success() -> None:
    spec = graph([tool("t"), tool("u")], [edge("t", "u", onError=True)])
    assert walk(spec, Returned(1))[1][1] == Complete(None, 1)


def test_a_second_approval_asks_again() -> None:
    """AW-8. Each HUMAN_APPROVAL is a question of its own; only the last decision's outcome counts."""
    spec = graph(
        [approval("one", "approve"), approval("two", "approve", "reject")],
        [edge("one", "two", "approve"), edge("two", "end", "approve"), edge("two", "end", "reject")],
    )
    state, commands = walk(spec, said("approve"), said("reject"))
    assert commands[1] == AwaitDecision("two", 1, ("approve", "reject"), {})
    assert commands[2] == Complete("rejectd", None)
    assert set(state.context["review"]) == {"one", "two"}


def test_an_edge_behind_a_decision_ends_the_run_with_its_outcome() -> None:
    """DA-12. What was approved is carried out, and then the run has the outcome; a failure of that gives none."""
    edges = [
        edge("one", "t", "approve"),
        edge("one", "u", "reject"),
        edge("t", "end", outcome="approved"),
        edge("t", "end", onError=True),
        edge("u", "end", outcome="approved"),
    ]
    spec = graph([approval("one", "approve", "reject"), tool("t"), tool("u")], edges)
    assert walk(spec, said("approve"), Returned(1))[1][2] == Complete("approved", 1)
    assert walk(spec, said("approve"), NodeFailed("full"))[1][2] == Complete(None, None)
    untrue = walk(spec, said("reject"), Returned(1))[1][2]
    assert untrue == Fail("outcome 'approved' cannot be given: no person has decided so", "u")


def test_a_decision_that_does_not_end_the_run_gives_no_outcome() -> None:
    spec = graph([approval("one", "approve"), tool("t")], [edge("one", "t", "approve")])
    assert walk(spec, said("approve"), Returned(1))[1][2] == Complete(None, 1)


@pytest.mark.parametrize("outcome", [Returned(1), Evaluated(True), said("approve")])
def test_an_outcome_that_does_not_fit_is_refused(spec: AiWorkflowSpec, outcome: Outcome) -> None:
    state, _ = start(spec, INPUT)
    with pytest.raises(StateError, match="does not answer node 'underwrite'"):
        advance(spec, state, outcome)


def test_an_unknown_decision_is_refused(spec: AiWorkflowSpec) -> None:
    state, _ = walk(spec, Answered("x"))
    with pytest.raises(StateError, match="no decision 'aprove'"):
        advance(spec, state, said("aprove"))


def test_nothing_follows_an_end(spec: AiWorkflowSpec) -> None:
    state, _ = walk(spec, Answered("x"), said("reject"))
    with pytest.raises(StateError, match="has ended COMPLETED"):
        advance(spec, state, Answered("more"))


def test_a_node_that_is_gone_is_an_error(spec: AiWorkflowSpec) -> None:
    """AW-6. An unknown node is an error, not an end."""
    with pytest.raises(StateError, match="at node 'gone'"):
        advance(spec, EngineState(current_node="gone"), Answered(1))
    lost = spec.model_copy(update={"initial_node": "gone"})
    assert start(lost, INPUT)[1] == Fail("there is no node 'gone'", None)


def test_a_state_gives_its_command_again(spec: AiWorkflowSpec) -> None:
    """DA-20. A run that rolls over carries the state alone."""
    state, _ = start(spec, INPUT)
    for outcome in (Answered("x"), said("more_info", "why?"), Answered("y"), said("approve")):
        state, command = advance(spec, state, outcome)
        assert pending(spec, EngineState.from_plain(state.to_plain())) == command
