"""Faults that graph runtimes are known for, as far as they are an engine's: each is looked for here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from casework.errors import StateError, UnserialisableError
from casework.graph.engine import (
    Answered,
    AwaitDecision,
    Complete,
    Decided,
    EngineState,
    Evaluated,
    Fail,
    Joined,
    NodeFailed,
    Outcome,
    Returned,
    RunBranches,
    RunTool,
    Signalled,
    Step,
    advance,
    pending,
    start,
)
from casework.graph.manifests import AiWorkflowSpec
from casework.values import dumps, loads

YES_NO = [{"name": "yes"}, {"name": "no"}]


def tool(name: str) -> dict[str, Any]:
    return {"id": name, "type": "TOOL", "tool": "t", "outputKey": f"{name}_out"}


def ask(name: str) -> dict[str, Any]:
    return {"id": name, "type": "HUMAN_APPROVAL", "decisions": YES_NO}


def edge(source: str, target: str, condition: Any = "", **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, "condition": condition, **more}


def graph(*nodes: dict[str, Any], edges: list[dict[str, Any]], **more: Any) -> AiWorkflowSpec:
    return AiWorkflowSpec.model_validate({"initialNode": nodes[0]["id"], "nodes": list(nodes), "edges": edges, **more})


def walked(spec: AiWorkflowSpec, *outcomes: Outcome) -> Iterator[Step]:
    """Each step; between any two the state is written down and read again, as a run that is resumed would."""
    state, command = start(spec, {"n": 5})
    yield state, command
    for outcome in outcomes:
        state, command = advance(spec, resumed(state), outcome)
        yield state, command


def resumed(state: EngineState) -> EngineState:
    return EngineState.from_plain(loads(dumps(state.to_plain())))


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, "x"])
def test_a_tool_node_advances_whatever_its_tool_returns(result: Any) -> None:
    """AW-7. The fault: a TOOL node never advances, or only where its result is taken for true."""
    spec = graph(tool("a"), tool("b"), edges=[edge("a", "b")])
    (_, first), (_, second), (_, third) = walked(spec, Returned(result), Returned(1))
    assert (first, second, third) == (RunTool("a", 1), RunTool("b", 1), Complete(None, 1))


@pytest.mark.parametrize(
    ("condition", "target"),
    [
        ("a_out.score > 600", "good"),
        ("a_out.score > 800", "bad"),
        ("has(a_out.name)", "bad"),
        ("!has(a_out.name)", "good"),
    ],
)
def test_an_expression_on_an_edge_is_evaluated(condition: str, target: str) -> None:
    """AW-7. The fault: an edge with an expression is compared as a word, so it is always false."""
    spec = graph(tool("a"), tool("good"), tool("bad"), edges=[edge("a", "good", condition), edge("a", "bad")])
    *_, (_, command) = walked(spec, Returned({"score": 700}))
    assert command == RunTool(target, 1)


@pytest.mark.parametrize("condition", ["a_out.scor > 600", "a_out", "a_out.name", "1"])
def test_an_expression_that_gives_no_truth_is_never_false(condition: str) -> None:
    """AW-7. The fault: an expression that fails is read as false, and the other edge is followed."""
    spec = graph(tool("a"), tool("good"), tool("bad"), edges=[edge("a", "good", condition), edge("a", "bad")])
    *_, (_, command) = walked(spec, Returned({"score": 700, "name": "x"}))
    assert isinstance(command, Fail)
    assert "no edge out of node 'a' can be chosen" in command.reason


def test_the_first_answer_does_not_pass_the_second_approval() -> None:
    """AW-8. The fault: the decision that passed the first approval is still there and passes the second."""
    spec = graph(
        ask("one"), ask("two"),
        edges=[edge("one", "two", "yes"), edge("one", "end", "no"),
               edge("two", "end", "yes"), edge("two", "end", "no")],
    )  # fmt: skip
    *_, (state, command) = walked(spec, Decided("yes", "", "ann"))
    assert command == AwaitDecision("two", 1, ("yes", "no"), {})
    assert pending(spec, resumed(state)) == command
    assert state.ended is None


def test_a_later_visit_of_an_approval_asks_again() -> None:
    """AW-8. The fault: an approval that was answered once is passed when the graph comes back to it."""
    spec = graph(
        ask("one"), tool("a"),
        edges=[edge("one", "a", "yes"), edge("one", "end", "no"), edge("a", "one")],
    )  # fmt: skip
    *_, (_, command) = walked(spec, Decided("yes", "", "ann"), Returned(1))
    assert command == AwaitDecision("one", 2, ("yes", "no"), {})


def test_an_answered_question_does_not_return() -> None:
    """AW-8, DA-20. The fault: after a resume the question that was answered is asked once more."""
    spec = graph(ask("one"), tool("a"), edges=[edge("one", "a", "yes"), edge("one", "end", "no")])
    *_, (state, command) = walked(spec, Decided("yes", "", "ann"))
    assert command == pending(spec, resumed(state)) == RunTool("a", 1)
    with pytest.raises(StateError, match="Decided does not answer node 'a'"):
        advance(spec, resumed(state), Decided("yes", "", "ann"))


def test_one_answer_is_not_taken_for_several_questions() -> None:
    """AW-4, AW-8. The fault: questions asked side by side are all answered by the first answer."""
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": [ask("one"), ask("two")]}
    spec = graph(node, edges=[])
    state, command = start(spec, {})
    assert isinstance(command, RunBranches)
    assert [each.step for each in command.branches] == ["one.1", "two.1"]
    yes = Decided("yes", "", "ann")
    for too_few in (yes, Joined((yes,))):
        with pytest.raises(StateError):
            advance(spec, state, too_few)
    state, _ = advance(spec, state, Joined((yes, Decided("no", "", "bob"))))
    assert [state.context["all"][name]["decision"] for name in ("one", "two")] == ["yes", "no"]


def test_the_way_that_was_chosen_is_kept_over_a_resume() -> None:
    """DA-20. The fault: which edge was followed is worked out anew on resume, from a context that has changed."""
    spec = graph(
        {"id": "c", "type": "CONDITION", "expression": "input.n > 3"}, tool("a"), tool("b"), ask("one"),
        edges=[edge("c", "a", True), edge("c", "b", False), edge("a", "one"), edge("b", "one"),
               edge("one", "end", "yes"), edge("one", "c", "no")],
    )  # fmt: skip
    outcomes: list[Outcome] = [Evaluated(True), Returned(1), Decided("no", "", "a"), Evaluated(False), Returned(2)]
    places = []
    for state, command in walked(spec, *outcomes):
        changed = resumed(EngineState(**{**state.to_plain(), "context": {**state.context, "input": {"n": 0}}}))
        assert pending(spec, changed) == command
        assert pending(spec, resumed(state)) == command
        places.append(state.current_node)
    assert places == ["c", "a", "one", "c", "b", "one"]


@pytest.mark.parametrize("value", [object(), {1: 2}, {"x": {3}}, lambda: 1])
def test_a_state_that_cannot_be_read_again_is_not_made(value: Any) -> None:
    """DA-20. The fault: a value is kept that no store holds, and the run is lost when it is resumed."""
    spec = graph(tool("a"), tool("b"), edges=[edge("a", "b")])
    state, _ = start(spec, {})
    try:
        after, _ = advance(spec, state, Returned(value))
    except UnserialisableError:
        assert state == start(spec, {})[0]
    else:
        assert resumed(after) == after


@pytest.mark.parametrize(
    "broken",
    [
        {"visits": 5}, {"visits": {"a": "1"}}, {"loop_count": "3"}, {"loop_count": -1}, {"turn": None}, {"turn": True},
        {"context": None}, {"context": []}, {"current_node": 7}, {"ended": "DONE"}, {"words": ["x"]}, {"reason": 1},
    ],
)  # fmt: skip
def test_an_invalid_state_is_not_gone_on_from(broken: dict[str, Any]) -> None:
    """DA-20. The fault: a state that no release wrote is stored, or read, and the run goes on somewhere."""
    with pytest.raises(StateError, match=f"A stored state has {next(iter(broken))}"):
        EngineState.from_plain({"current_node": "a", **broken})


OLD = (
    '{"answer":{"recommend":"refer"},"context":{"errors":{},"input":{"amount":7600.50},"recommendation":'
    '{"recommend":"refer"},"review":{}},"current_node":"decision","ended":null,"loop_count":2,"outcome":null,'
    '"output":{"recommend":"refer"},"reason":null,"turn":1,"turn_limit":5,"visits":{"decision":1,"underwrite":1},'
    '"words":null}'
)
"""A state as the release before branches, sub-workflows and waits has written it."""


def test_a_state_of_an_older_release_is_gone_on_from(loan: dict[str, Any]) -> None:
    """DA-20. The fault: a release cannot read what the one before has stored, so open runs are lost."""
    spec = AiWorkflowSpec.model_validate(loan)
    state = EngineState.from_plain(loads(OLD))
    assert pending(spec, state) == AwaitDecision("decision", 1, ("approve", "reject", "more_info"), {})
    assert dumps(state.to_plain()) == OLD
    _, command = advance(spec, state, Decided("approve", "fine", "ann"))
    assert command == Complete("approved", {"recommend": "refer"})


@pytest.mark.parametrize("missing", sorted(loads(OLD)))
def test_a_state_without_a_field_of_this_release_can_be_read(missing: str, loan: dict[str, Any]) -> None:
    """DA-20. An older one has fewer; a newer one has more, which are left out."""
    older = {name: value for name, value in loads(OLD).items() if name != missing}
    assert EngineState.from_plain({**older, "of_a_newer_release": 1}) == EngineState.from_plain(older)
    assert AiWorkflowSpec.model_validate(loan)


def test_a_failure_is_never_an_answer() -> None:
    """AW-8. The fault: the text of an error is stored as the node's output and flows on."""
    spec = graph(tool("a"), tool("b"), edges=[edge("a", "b")])
    *_, (state, command) = walked(spec, NodeFailed("boom"))
    assert command == Fail("boom", "a")
    assert "a_out" not in state.context


def test_a_late_outcome_of_another_kind_is_refused() -> None:
    """AW-6. The fault: whatever comes back is taken for the pending node's."""
    spec = graph(tool("a"), edges=[])
    state, _ = start(spec, {})
    for outcome in (Answered(1), Signalled(1), Evaluated(True), Joined()):
        with pytest.raises(StateError, match="does not answer"):
            advance(spec, state, outcome)
