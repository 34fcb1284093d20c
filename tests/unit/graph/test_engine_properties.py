"""Random graphs, random outcomes: the engine always ends or waits, within its limits."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.graph.random_graphs import admitted, graphs

from casework.errors import ManifestError
from casework.graph.engine import (
    Answered,
    AwaitDecision,
    Command,
    Complete,
    Decided,
    Ended,
    EngineState,
    Evaluate,
    Evaluated,
    Fail,
    Joined,
    NodeFailed,
    Outcome,
    Returned,
    RunAgent,
    RunBranches,
    RunSubworkflow,
    Signalled,
    TimedOut,
    Wait,
    advance,
    pending,
    start,
)
from casework.graph.manifests import AiWorkflowSpec
from casework.values import dumps, loads


def spec_of(graph: dict[str, Any]) -> AiWorkflowSpec:
    """The graph where it is admitted; others are not looked at."""
    try:
        return admitted(graph).workflow.spec
    except ManifestError:
        assume(False)
        raise


@st.composite
def outcomes(draw: st.DrawFn, command: Command) -> Outcome:
    if draw(st.integers(0, 9)) == 7:
        return NodeFailed("it broke")
    if isinstance(command, RunAgent):
        return Answered(draw(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats())))
    if isinstance(command, Evaluate):
        return Evaluated(draw(st.one_of(st.booleans(), st.none())))
    if isinstance(command, RunBranches):
        return Joined(tuple(draw(outcomes(branch.command)) for branch in command.branches))  # type: ignore[misc]  # commands of branches have results of branches
    if isinstance(command, RunSubworkflow):
        return Ended(draw(st.sampled_from((None, "approved"))), draw(st.integers()))
    if isinstance(command, Wait):
        timed = command.signal is None or (command.duration_s is not None and draw(st.booleans()))
        return TimedOut() if timed else Signalled(draw(st.text(max_size=3)))
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
    spec = spec_of(graph)
    state, command = start(spec, {"n": data.draw(st.integers(0, 6)), "l": [1, 2]}, turn_limit=limit)
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
    spec = spec_of(graph)
    state, command = start(spec, {"n": 1, "l": [1, 2]})
    given_outcomes, trace = [], [command]
    while not isinstance(command, (Complete, Fail)):
        outcome = data.draw(outcomes(command))
        given_outcomes.append(outcome)
        state, command = advance(spec, state, outcome)
        trace.append(command)
    again, command = start(spec, {"n": 1, "l": [1, 2]})
    second = [command]
    for outcome in given_outcomes:
        again, command = advance(spec, EngineState.from_plain(loads(dumps(again.to_plain()))), outcome)
        second.append(command)
    assert second == trace
