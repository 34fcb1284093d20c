"""Random graphs, random outcomes: the engine always ends or waits, within its limits."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casework.errors import ManifestError
from casework.graph.admission import admit
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
    advance,
    pending,
    start,
)
from casework.graph.manifests import AiAgent, AiWorkflow, AiWorkflowSpec, LlmProvider
from casework.values import dumps, loads

HEAD = {"apiVersion": "casework.dev/v1alpha1"}
AGENT = AiAgent.model_validate({**HEAD, "metadata": {"name": "a"}, "spec": {"provider": "p"}})
PROVIDER = LlmProvider.model_validate(
    {**HEAD, "metadata": {"name": "p"}, "spec": {"type": "openai", "defaultModel": "m"}}
)
DECISIONS = ("approve", "reject", "more_info")
CONDITIONS = ("", "true", "false", "input.n > 3", "has(input.nothing)", "input.nothing > 1")
NODES: dict[str, dict[str, Any]] = {
    "AGENT": {"agentRef": "a", "outputKey": "answer"},
    "TOOL": {"tool": "t", "outputKey": "result"},
    "CONDITION": {"expression": "input.n > 3"},
    "HUMAN_APPROVAL": {"decisions": [{"name": name, "outcome": name} for name in DECISIONS]},
}


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    ids = [f"n{i}" for i in range(draw(st.integers(1, 6)))]
    targets = st.sampled_from([*ids, "end"])
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for name in ids:
        kind = draw(st.sampled_from(sorted(NODES)))
        nodes.append({"id": name, "type": kind, **NODES[kind]})
        names = {"CONDITION": ["true", "false"], "HUMAN_APPROVAL": list(DECISIONS)}.get(kind)
        for condition in names or draw(st.lists(st.sampled_from(CONDITIONS), max_size=3)):
            edges.append({"from": name, "to": draw(targets), "condition": condition})
        if draw(st.booleans()):
            edges.append({"from": name, "to": draw(targets), "onError": True})
    return {"initialNode": "n0", "nodes": nodes, "edges": edges, "maxLoops": draw(st.integers(1, 12))}


def admitted(graph: dict[str, Any]) -> AiWorkflowSpec:
    """The graph where it is admitted; others are not looked at."""
    workflow = AiWorkflow.model_validate({**HEAD, "metadata": {"name": "w"}, "spec": graph})
    try:
        admit([workflow, AGENT, PROVIDER], ["t"])
    except ManifestError:
        assume(False)
    return workflow.spec


@st.composite
def outcomes(draw: st.DrawFn, command: Command) -> Outcome:
    if draw(st.integers(0, 9)) == 0:
        return NodeFailed("it broke")
    if isinstance(command, RunAgent):
        return Answered(draw(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats())))
    if isinstance(command, Evaluate):
        return Evaluated(draw(st.one_of(st.booleans(), st.none())))
    if isinstance(command, AwaitDecision):
        allowed = [name for name in command.decisions if name not in command.refused]
        return Decided(draw(st.sampled_from(allowed)), draw(st.text(max_size=3)), "ann") if allowed else NodeFailed("-")
    return Returned(draw(st.dictionaries(st.text(max_size=3), st.decimals(allow_nan=False), max_size=2)))


def same(spec: AiWorkflowSpec, state: EngineState, command: Command) -> None:
    again = EngineState.from_plain(loads(dumps(state.to_plain())))
    assert again == state
    assert pending(spec, again) == command


@settings(max_examples=200, deadline=None)
@given(graph=graphs(), limit=st.integers(1, 4), data=st.data())
def test_every_admitted_graph_ends_or_waits(graph: dict[str, Any], limit: int, data: st.DataObject) -> None:
    """AW-6, AW-9, DA-14. Within maxLoops visits and the turn limit, whatever the outcomes; the state survives JSON."""
    spec = admitted(graph)
    state, command = start(spec, {"n": data.draw(st.integers(0, 6))}, turn_limit=limit)
    steps = 0
    while not isinstance(command, (Complete, Fail)):
        same(spec, state, command)
        steps += 1
        assert steps <= spec.max_loops
        assert state.loop_count == steps == sum(state.visits.values())
        assert state.turn <= limit
        state, command = advance(spec, state, data.draw(outcomes(command)))
    same(spec, state, command)
    assert (state.ended == "COMPLETED") == isinstance(command, Complete)


@settings(max_examples=50, deadline=None)
@given(graph=graphs(), data=st.data())
def test_the_same_outcomes_give_the_same_commands(graph: dict[str, Any], data: st.DataObject) -> None:
    """AW-9. The engine is a function: a second walk, from stored states, shows the same trace."""
    spec = admitted(graph)
    state, command = start(spec, {"n": 1})
    given_outcomes, trace = [], [command]
    while not isinstance(command, (Complete, Fail)):
        outcome = data.draw(outcomes(command))
        given_outcomes.append(outcome)
        state, command = advance(spec, state, outcome)
        trace.append(command)
    again, command = start(spec, {"n": 1})
    second = [command]
    for outcome in given_outcomes:
        again, command = advance(spec, EngineState.from_plain(loads(dumps(again.to_plain()))), outcome)
        second.append(command)
    assert second == trace
