"""PARALLEL, MAP, SUBWORKFLOW and WAIT in the pure engine."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casework.errors import StateError
from casework.graph.engine import (
    Answered,
    AwaitDecision,
    Branch,
    Command,
    Complete,
    Decided,
    Ended,
    EngineState,
    Evaluated,
    Fail,
    Joined,
    NodeFailed,
    Outcome,
    Returned,
    RunAgent,
    RunBranches,
    RunSubworkflow,
    RunTool,
    Signalled,
    TimedOut,
    Wait,
    advance,
    opening,
    pending,
    scope,
    start,
)
from casework.graph.manifests import AiWorkflowSpec
from casework.values import dumps, loads

INPUT = {"l": [Decimal("1.50"), {"x": 2}], "n": 3, "long": list(range(1001))}
AGENT = {"id": "web", "type": "AGENT", "agentRef": "a"}
TOOL = {"id": "sum", "type": "TOOL", "tool": "t"}
ASK = {"id": "ask", "type": "HUMAN_APPROVAL", "decisions": [{"name": "yes"}, {"name": "no"}]}


def graph(*nodes: dict[str, Any], edges: list[dict[str, Any]] | None = None, **more: Any) -> AiWorkflowSpec:
    made = {"initialNode": nodes[0]["id"], "nodes": list(nodes), "edges": edges or [], **more}
    return AiWorkflowSpec.model_validate(made)


def walk(spec: AiWorkflowSpec, *outcomes: Outcome, turn_limit: int = 5) -> tuple[EngineState, Command]:
    state, command = start(spec, INPUT, turn_limit=turn_limit)
    for outcome in outcomes:
        state, command = advance(spec, EngineState.from_plain(loads(dumps(state.to_plain()))), outcome)
        assert pending(spec, state) == command
    return state, command


def parallel(*branches: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "gather", "type": "PARALLEL", "branches": list(branches), "outputKey": "all", **more}


def mapped(items: str, branch: dict[str, Any] = TOOL, **more: Any) -> dict[str, Any]:
    return {"id": "each", "type": "MAP", "items": items, "branches": [branch], "outputKey": "all", **more}


def test_a_parallel_runs_all_its_branches() -> None:
    """AW-4. One command with a command for each branch, in the order of the manifest."""
    _, command = walk(graph(parallel(AGENT, TOOL, ASK, maxParallel=2)))
    assert command == RunBranches(
        "gather",
        1,
        (
            Branch("web", 1, RunAgent("web", 1, 1, None, render=True)),
            Branch("sum", 1, RunTool("sum", 1)),
            Branch("ask", 1, AwaitDecision("ask", 1, ("yes", "no"), {})),
        ),
        2,
    )


def test_a_joins_value_is_by_branch() -> None:
    """AW-4. What each brought, under its id, under the node's outputKey; what follows can use it."""
    spec = graph(parallel(AGENT, TOOL, ASK), {**TOOL, "outputKey": "s"}, edges=[{"from": "gather", "to": "sum"}])
    state, command = walk(spec, Joined((Answered("hit"), Returned(5), Decided("no", "old", "ann"))))
    said = {"decision": "no", "reason": "old", "reviewer": "ann"}
    assert state.context["all"] == {"web": "hit", "sum": 5, "ask": said}
    assert command == RunTool("sum", 1)
    assert state.context["review"] == {}


def test_a_map_has_a_branch_for_each_item() -> None:
    """AW-4. Items keep their digits; templates see item and index, from 0; the path counts from 1."""
    state, command = walk(graph(mapped("input.l")))
    assert isinstance(command, RunBranches)
    assert [(each.step, each.item, each.index) for each in command.branches] == [
        ("sum.1", Decimal("1.50"), 0),
        ("sum.2", {"x": 2}, 1),
    ]
    assert command.max_parallel == 10
    assert scope(state, command.branches[1]) == {**state.context, "item": {"x": 2}, "index": 1}
    assert scope(state) == state.context


def test_a_maps_value_is_in_the_order_of_its_items() -> None:
    """AW-4."""
    spec = graph(mapped("input.l.map(x, 1)"))
    assert walk(spec, Joined((Returned("a"), Returned(None))))[1] == Complete(None, ["a", None])


def test_an_empty_map_is_an_empty_list() -> None:
    """AW-4. No branch, and the run goes on."""
    spec = graph(mapped("[]"))
    _, command = walk(spec)
    assert command == RunBranches("each", 1, (), 10)
    assert walk(spec, Joined())[1] == Complete(None, [])


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ("input.n", "items gave 3, not a list"),
        ("input", "not a list"),
        ("'abc'", "not a list"),
        ("input.long", "1001 items; at most 1000"),
        ("input.nothing", "nothing"),
        ("input.n.x", "fails"),
        ("nothing", "unknown name"),
        ("[1, 2][5]", "fails"),
        ("input.__class__", "__class__"),
        ("input.l.__len__", "fails"),
        ("[b'x']", "what JSON does not have"),
    ],
)
def test_items_that_are_no_list_fail_the_node(items: str, says: str) -> None:
    """AW-4, AW-10. No branch is run; an onError edge may catch it, also without an end in sight."""
    spec = graph(mapped(items))
    _, command = walk(spec)
    assert isinstance(command, RunBranches)
    assert command.branches == ()
    _, command = walk(spec, Joined())
    assert isinstance(command, Fail)
    assert says in command.reason
    again: list[dict[str, Any]] = [{"from": "each", "to": "end"}, {"from": "each", "to": "each", "onError": True}]
    state, command = walk(graph(mapped(items), edges=again, maxLoops=3), *[Joined()] * 3)
    assert "loop limit 3" in (state.reason or "")


def test_each_failed_branch_is_told_in_order() -> None:
    """AW-4, AW-8. The node fails; a failure among the branches never becomes a value."""
    spec = graph(parallel(AGENT, TOOL, ASK))
    state, command = walk(spec, Joined((NodeFailed("a"), Returned(1), NodeFailed("b"))))
    assert command == Fail("2 of 3 branches failed: web.1: a; ask.1: b", "gather")
    assert "all" not in state.context


def test_who_catches_a_failed_join_gets_what_the_others_brought() -> None:
    """AW-8. Null in place of what failed, never its words; the reason is among the errors."""
    edges: list[dict[str, Any]] = [{"from": "gather", "to": "sum", "onError": True}]
    spec = graph(parallel(AGENT, TOOL, ASK), {**TOOL, "outputKey": "s"}, edges=edges)
    state, command = walk(spec, Joined((NodeFailed("a"), Returned(1), NodeFailed("b"))))
    assert command == RunTool("sum", 1)
    assert state.context["all"] == {"web": None, "sum": 1, "ask": None}
    assert state.context["errors"] == {"gather": "2 of 3 branches failed: web.1: a; ask.1: b"}


def test_a_thousand_failures_are_told_in_bounded_words() -> None:
    spec = graph(mapped("input.many"))
    state, _ = start(spec, {"many": list(range(1000))})
    _, command = advance(spec, state, Joined(tuple(NodeFailed("x" * 5000) for _ in range(1000))))
    assert isinstance(command, Fail)
    assert len(command.reason) < 10_000
    assert command.reason.endswith("; and 950 more")


@pytest.mark.parametrize(
    ("results", "says"),
    [
        ((), "has 3 branches and got 0 results"),
        ((Answered(1), Returned(1), Decided("yes", "", "a"), Returned(1)), "got 4 results"),
        ((Returned(1), Returned(1), Decided("yes", "", "a")), "Returned does not answer node 'web'"),
        ((Answered(1), Returned(1), Decided("maybe", "", "a")), "no decision 'maybe'"),
        ((Answered(1), TimedOut(), NodeFailed("x")), "TimedOut does not answer node 'sum'"),
    ],
)
def test_results_that_do_not_fit_are_refused(results: Any, says: str) -> None:
    """AW-6. The state stays; nothing is stored by half."""
    spec = graph(parallel(AGENT, TOOL, ASK))
    state, command = start(spec, INPUT)
    with pytest.raises(StateError, match=says):
        advance(spec, state, Joined(results))
    assert pending(spec, state) == command


@pytest.mark.parametrize(
    "node",
    [
        parallel(TOOL),
        mapped("input.l"),
        {"id": "s", "type": "SUBWORKFLOW", "workflowRef": "w", "outputKey": "o"},
        {"id": "w", "type": "WAIT", "duration": 1, "signal": "go"},
        {"id": "c", "type": "CONDITION", "expression": "true"},
        {**TOOL, "outputKey": "o"},
        {**AGENT, "outputKey": "o"},
        ASK,
    ],
    ids=lambda node: node["type"],
)
def test_only_its_own_outcome_answers_a_node(node: dict[str, Any]) -> None:
    """AW-6. Any other is refused, and the state is as it was."""
    own: dict[str, list[type]] = {
        "PARALLEL": [Joined],
        "MAP": [Joined],
        "SUBWORKFLOW": [Ended],
        "WAIT": [Signalled, TimedOut],
        "CONDITION": [Evaluated],
        "TOOL": [Returned],
        "AGENT": [Answered],
        "HUMAN_APPROVAL": [Decided],
    }
    spec = graph(node)
    state, _ = start(spec, INPUT)
    outcomes: list[Outcome] = [
        Joined(), Ended(), Signalled(), TimedOut(), Evaluated(True), Returned(1), Answered(1), Decided("yes", "", "a"),
    ]  # fmt: skip
    for outcome in outcomes:
        if type(outcome) not in own[node["type"]]:
            with pytest.raises(StateError, match="does not answer"):
                advance(spec, state, outcome)


def test_a_node_with_an_agent_branch_is_one_turn() -> None:
    """DA-14. However many agents speak side by side; the limit counts it as any other turn."""
    other = {**AGENT, "id": "other"}
    back: list[dict[str, Any]] = [{"from": "gather", "to": "ask"}, {"from": "ask", "to": "gather", "condition": "yes"},
            {"from": "ask", "to": "end", "condition": "no"}]  # fmt: skip
    spec = graph(parallel(AGENT, other), ASK, edges=back)
    both = Joined((Answered(1), Answered(2)))
    state, command = walk(spec, both, turn_limit=1)
    assert state.turn == 1
    assert command == AwaitDecision("ask", 1, ("yes", "no"), {"yes": "turn limit 1 is reached: no"})
    state, command = walk(spec, both, Decided("yes", "Look again.", "ann"))
    assert isinstance(command, RunBranches)
    assert [each.command for each in command.branches] == [
        RunAgent("web", 1, 2, "Look again.", render=True),
        RunAgent("other", 1, 2, "Look again.", render=True),
    ]
    assert (command.visit, state.turn) == (2, 2)
    assert walk(graph(parallel(TOOL)))[0].turn == 0


def test_a_sub_workflow_brings_outcome_and_output() -> None:
    """AW-4."""
    spec = graph({"id": "s", "type": "SUBWORKFLOW", "workflowRef": "talk", "outputKey": "o"})
    assert walk(spec)[1] == RunSubworkflow("s", 1, "talk")
    state, command = walk(spec, Ended("approved", {"x": 1}))
    assert command == Complete(None, {"outcome": "approved", "output": {"x": 1}})
    assert state.context["o"] == {"outcome": "approved", "output": {"x": 1}}


@pytest.mark.parametrize(
    ("fields", "command", "outcome", "value"),
    [
        ({"duration": "PT15M"}, Wait("w", 1, 900.0, None), TimedOut(), None),
        ({"signal": "go"}, Wait("w", 1, None, "go"), Signalled({"x": 1}), {"x": 1}),
        ({"signal": "go", "duration": 2}, Wait("w", 1, 2.0, "go"), Signalled(5), {"timedOut": False, "payload": 5}),
        ({"signal": "go", "duration": 2}, Wait("w", 1, 2.0, "go"), TimedOut(), {"timedOut": True, "payload": None}),
    ],
)
def test_a_wait_brings_what_ended_it(fields: Any, command: Command, outcome: Outcome, value: Any) -> None:
    """AW-4. Time, a signal, or the first of both."""
    spec = graph({"id": "w", "type": "WAIT", "outputKey": "came", **fields})
    assert walk(spec)[1] == command
    state, _ = walk(spec, outcome)
    assert state.context["came"] == value


def test_a_wait_without_a_key_stores_nothing() -> None:
    """AW-4. The output stays what the node before has stored."""
    spec = graph(
        {**TOOL, "outputKey": "t"}, {"id": "w", "type": "WAIT", "duration": 0}, edges=[{"from": "sum", "to": "w"}]
    )
    state, command = walk(spec, Returned(7), TimedOut())
    assert command == Complete(None, 7)
    assert "w" not in state.context


@pytest.mark.parametrize(("fields", "wrong"), [({"duration": 1}, Signalled(1)), ({"signal": "go"}, TimedOut())])
def test_a_wait_is_not_ended_by_what_it_does_not_wait_for(fields: Any, wrong: Outcome) -> None:
    spec = graph({"id": "w", "type": "WAIT", **fields})
    with pytest.raises(StateError, match="does not answer node 'w' of type WAIT"):
        advance(spec, start(spec, INPUT)[0], wrong)


def test_an_agent_is_opened_by_template_item_or_input() -> None:
    """AW-7. In this order."""
    spec = graph(mapped("input.l", AGENT), {**AGENT, "id": "a", "outputKey": "x"})
    state, command = start(spec, INPUT)
    assert isinstance(command, RunBranches)
    (branch,) = spec.nodes[0].branches or ()
    assert opening(branch, scope(state, command.branches[1])) == '{"x":2}'
    assert opening(spec.nodes[1], scope(state)) == dumps(INPUT)
    written = branch.model_copy(update={"input_template": "{{ index }}: {{ item.x }} of {{ input.n }}"})
    assert opening(written, scope(state, command.branches[1])) == "1: 2 of 3"
