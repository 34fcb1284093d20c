"""The engine's state out of records of its visits: the very state that the engine had, or a clear refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.graph.random_graphs import graphs
from tests.unit.graph.test_engine_properties import outcomes, spec_of

from casework.errors import StateError
from casework.graph import fanning
from casework.graph.commands import Complete, Decided, Evaluate, Fail, Joined, NodeFailed, Outcome
from casework.graph.engine import EngineState, Step, advance, evaluate, pending, start
from casework.graph.manifests import FANS, AiWorkflowSpec, Node
from casework.graph.recall import Last, Recorded, edited, key_of, outcome_of, recall
from casework.values import dumps, loads


def recorded(spec: AiWorkflowSpec, node: Node, path: str, state: EngineState, outcome: Outcome) -> Recorded:
    """What rows keep of a visit: its failure, its decision, or its output under a key."""
    if isinstance(outcome, NodeFailed):
        return Recorded(path, failed=outcome.error)
    if isinstance(outcome, Decided):
        return Recorded(path, decided=outcome)
    key = key_of(node)
    if node.type in FANS:
        assert isinstance(outcome, Joined)
        due = fanning.branches(node, state.context, state.turn, state.words)
        value = fanning.joined(node, due, outcome.results)
        if reason := fanning.failure(due, outcome.results):
            caught = {key or "": loads(dumps(value))} if spec.rescue(node.id) else {}
            return Recorded(path, failed=reason, values=caught)
    else:
        value = None if key is None else fanning.value_of(node, outcome)  # type: ignore[arg-type]  # no CONDITION here
    return Recorded(path, values={} if key is None else {key: loads(dumps(value))})


def walked(spec: AiWorkflowSpec, begun: Step, data: st.DataObject) -> tuple[list[Recorded], dict[str, EngineState]]:
    """A random walk: its records, and the state at the entry of each visit."""
    visits, states = [], {}
    state, command = begun
    while not isinstance(command, (Complete, Fail)):
        node, path = spec.node(command.node), f"{command.node}.{command.visit}"
        assert node is not None
        states[path] = state
        made = evaluate(command, state) if isinstance(command, Evaluate) else data.draw(outcomes(command))
        if isinstance(command, Evaluate):
            visits.append(Recorded(path))
        else:
            visits.append(_record(spec, node, path, state, made))
        state, command = advance(spec, state, made)
    return visits, states


def _record(spec: AiWorkflowSpec, node: Node, path: str, state: EngineState, made: Outcome) -> Recorded:
    try:
        return recorded(spec, node, path, state, made)
    except Exception as error:  # noqa: BLE001  # items that cannot be had: the visit has failed by that
        return Recorded(path, failed=str(error))


@settings(max_examples=200, deadline=None)
@given(graph=graphs(), limit=st.integers(1, 4), data=st.data())
def test_every_state_of_a_walk_is_recalled(graph: dict[str, Any], limit: int, data: st.DataObject) -> None:
    """AW-15. For every prefix of a walk over a random graph the recalled state is the engine's own."""
    spec = spec_of(graph)
    begun = start(spec, {"n": data.draw(st.integers(0, 6)), "l": [1, 2]}, turn_limit=limit)
    visits, states = walked(spec, begun, data)
    for path, state in states.items():
        assert recall(spec, begun, visits, path) == state


@settings(max_examples=50, deadline=None)
@given(graph=graphs(), data=st.data())
def test_a_walk_can_be_recalled_from_its_middle(graph: dict[str, Any], data: st.DataObject) -> None:
    """AW-15. As a fork of a fork is: its first visit is not that of the graph."""
    spec = spec_of(graph)
    begun = start(spec, {"n": 4, "l": [1, 2]})
    visits, states = walked(spec, begun, data)
    middle = data.draw(st.integers(0, len(visits) - 1))
    state = states[visits[middle].path]
    for visit in visits[middle:]:
        assert recall(spec, (state, pending(spec, state)), visits[middle:], visit.path) == states[visit.path]


GRAPH = {
    "initialNode": "look",
    "nodes": [
        {"id": "look", "type": "TOOL", "tool": "t", "outputKey": "found"},
        {"id": "think", "type": "AGENT", "agentRef": "a", "outputKey": "view", "inputTemplate": "{{ found }}"},
        {"id": "ask", "type": "HUMAN_APPROVAL", "decisions": [{"name": "yes"}]},
    ],
    "edges": [
        {"from": "look", "to": "think"},
        {"from": "think", "to": "ask"},
        {"from": "ask", "to": "end", "condition": "yes"},
    ],
}


@pytest.mark.parametrize(
    ("visits", "words"),
    [
        ([Recorded("think.1")], "look.1 is due there"),
        ([Recorded("look.1", values={"found": 1}), Recorded("think.2")], "think.1 is due there"),
        ([Recorded("look.1"), Recorded("think.1")], "output of look.1 is not recorded"),
        ([Recorded("look.1", ended=False), Recorded("think.1")], "how look.1 ended is not recorded"),
        ([Recorded("look.1", failed="broken"), Recorded("think.1")], "the run has ended before it"),
        ([Recorded("look.1", values={"found": 1})], "No visit ask.1 is recorded"),
    ],
)
def test_records_that_do_not_fit_are_found_out(visits: list[Recorded], words: str) -> None:
    """AW-15. Nothing is guessed: what the records lack is named."""
    spec = spec_of(GRAPH)
    with pytest.raises(StateError, match=words):
        recall(spec, start(spec, {}), visits, "ask.1")


def test_what_an_agent_said_is_edited_wherever_it_counts() -> None:
    """AW-15. The answer that a reviewer is asked about follows its key; other keys leave it alone."""
    spec = spec_of(GRAPH)
    visits = [Recorded("look.1", values={"found": 1}), Recorded("think.1", values={"view": "good"}), Recorded("ask.1")]
    state = recall(spec, start(spec, {}), visits, "ask.1")
    last = Last(answer="view", output="view")
    other = edited(state, {"view": "bad"}, last)
    assert (other.answer, other.output, other.context["view"]) == ("bad", "bad", "bad")
    same = edited(state, {"found": 2}, last)
    assert (same.answer, same.output, same.context["found"]) == ("good", "good", 2)
    assert edited(state, {}, last) == state
    assert edited(state, {"found": "good"}, Last()).answer == "good"


def test_an_output_of_another_shape_is_refused() -> None:
    """AW-15. A row that no node of this kind writes is no outcome."""
    node = Node.model_validate({"id": "s", "type": "SUBWORKFLOW", "workflowRef": "sub", "outputKey": "k"})
    with pytest.raises(StateError, match="not one of a SUBWORKFLOW"):
        outcome_of(node, "text")
