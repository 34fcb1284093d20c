"""GraphStateMachineEngine: `(spec, state, outcome) -> (state, command)`, pure.

How it moves: `start` enters the initial node. Entering a node checks the limits, counts the visit and yields the
command that the node's type asks for. The driver carries the command out and comes back with its outcome; `advance`
stores what the outcome brought, follows the first matching edge, and enters the next node. Drivers differ (durable,
local, tests), this does not; for the same outcomes they all see the same commands.

A state stands for its command: `pending` gives it again, so a run that rolls over carries the state alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from casework.errors import ExpressionError, StateError
from casework.graph import expressions, fanning, templates
from casework.graph.commands import (
    Answered,
    AwaitDecision,
    Branch,
    Command,
    Complete,
    Decided,
    Due,
    Ended,
    Evaluate,
    Evaluated,
    Fail,
    Joined,
    NodeFailed,
    Outcome,
    Result,
    Returned,
    RunAgent,
    RunBranches,
    RunSubworkflow,
    RunTool,
    Signalled,
    TimedOut,
    Wait,
)
from casework.graph.manifests import FANS, MAX_PARALLEL, AiWorkflowSpec, BranchSpec, Edge, Node, Vertex
from casework.graph.places import Place, Way
from casework.graph.state import DEFAULT_TURN_LIMIT, EngineState
from casework.graph.words import shown
from casework.values import dumps, settled

__all__ = [
    "Answered",
    "AwaitDecision",
    "Branch",
    "Command",
    "Complete",
    "Decided",
    "Ended",
    "EngineState",
    "Evaluate",
    "Evaluated",
    "Fail",
    "Joined",
    "NodeFailed",
    "Outcome",
    "Result",
    "Returned",
    "RunAgent",
    "RunBranches",
    "RunSubworkflow",
    "RunTool",
    "Signalled",
    "Step",
    "TimedOut",
    "Wait",
    "advance",
    "evaluate",
    "mentioned",
    "opening",
    "pending",
    "refusals",
    "scope",
    "start",
]

Step = tuple[EngineState, Command]
"""Where the run stands, and what is due."""
_TRIED, _SHOWN = 5, 60
"""Most conditions that a reason tells, and most characters of each."""


def start(spec: AiWorkflowSpec, input: Any, *, turn_limit: int = DEFAULT_TURN_LIMIT) -> Step:  # noqa: A002 - AW-3's word
    """Enter the initial node with `input`, a plain object.

    Raises:
        UnserialisableError: `input` is not plain.
    """
    context = {"input": settled(input), "review": {}, "errors": {}}
    return _enter(spec, EngineState(turn_limit=turn_limit, context=context), spec.initial_node, None)


def advance(spec: AiWorkflowSpec, state: EngineState, outcome: Outcome) -> Step:
    """Take the outcome of the pending command and go on.

    Raises:
        StateError: the run has ended, or the outcome does not answer the pending command.
        UnserialisableError: the outcome's value is not plain.
    """
    place = _current(spec, state)
    if place.type == "CONDITION" and isinstance(outcome, Evaluated):
        return _branched(spec, state, place, outcome.value)
    if place.type == "TOOL" and isinstance(outcome, Returned):
        return _stored(spec, state, place, outcome.result)
    node = place.node
    if isinstance(outcome, NodeFailed):
        return _failed(spec, state, node, outcome.error)
    if node.type in FANS and isinstance(outcome, Joined):
        return _joined(spec, state, place, outcome)
    if isinstance(outcome, (Evaluated, Joined)) or node.type in ("CONDITION", *FANS):
        fitting = {"CONDITION": "Evaluated", "PARALLEL": "Joined", "MAP": "Joined"}.get(node.type, "its own outcome")
        raise StateError(
            f"{type(outcome).__name__} does not answer node {node.id!r} of type {node.type}: "
            f"give {fitting} or NodeFailed."
        )
    value = fanning.value_of(node, outcome)
    if isinstance(outcome, Decided):
        return _decided(spec, state, node, outcome)
    return _stored(spec, state, place, value)


def pending(spec: AiWorkflowSpec, state: EngineState) -> Command:
    """The command that `state` stands for, the same that `start` or `advance` returned with it."""
    if state.ended == "COMPLETED":
        return Complete(state.outcome, state.output)
    if state.ended == "FAILED":
        return Fail(state.reason or "", state.current_node)
    return _due(spec, state, _current(spec, state))


def _due(spec: AiWorkflowSpec, state: EngineState, place: Place) -> Due:
    visit = state.visits.get(place.id, 0)
    if place.type == "TOOL":
        return RunTool(place.id, visit)
    node = place.node
    if place.type == "CONDITION":
        return Evaluate(place.id, visit, node.expression or "")
    if place.type in FANS:
        return RunBranches(node.id, visit, _branches(state, node), node.max_parallel or MAX_PARALLEL)
    render = visit == 1 or state.words is None
    return fanning.work(node, visit, state.turn, state.words, render=render, refused=refusals(spec, state))


def scope(state: EngineState, branch: Branch | None = None) -> Mapping[str, Any]:
    """What templates and arguments of a visit see: the context, and in a branch of a MAP its `item` and `index`."""
    if branch is None or branch.index is None:
        return state.context
    return {**state.context, "item": branch.item, "index": branch.index}


def mentioned(vertex: Vertex, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Those parts of what a visit sees (`scope`) that its template or arguments can use.

    For an AGENT without a template it is what `opening` gives instead.
    """
    if vertex.type == "AGENT" and vertex.input_template is None:
        names = {"item", "index"} if "index" in seen and isinstance(vertex, BranchSpec) else {"input"}
    else:
        names = templates.mentioned([vertex.input_template, vertex.arguments], seen)
    return {name: seen[name] for name in seen if name in names}


def evaluate(command: Evaluate, state: EngineState) -> Evaluated | NodeFailed:
    """Carry out an `Evaluate`: the value over the state's context, or the failure of the node."""
    try:
        return Evaluated(expressions.evaluate(command.expression, state.context))
    except ExpressionError as error:
        return NodeFailed(str(error))


def opening(vertex: Vertex, seen: Mapping[str, Any]) -> str:
    """The message that opens an agent's visit: its template over `seen` (`scope`), else the input or item as JSON.

    Raises:
        ExpressionError: the template fails.
    """
    if vertex.input_template is not None:
        return templates.render(vertex.input_template, seen)
    return dumps(seen["item"] if "index" in seen and isinstance(vertex, BranchSpec) else seen.get("input"))


def refusals(spec: AiWorkflowSpec, state: EngineState, turn_limit: int | None = None) -> dict[str, str]:
    """The decisions of the current HUMAN_APPROVAL node that are refused now, each with the reason.

    Refused is what leads directly to a node that starts a turn, when the turn limit is reached. `turn_limit` is the
    state's own unless given.
    """
    limit = state.turn_limit if turn_limit is None else turn_limit
    node = spec.node(state.current_node or "")
    if node is None or node.type != "HUMAN_APPROVAL" or state.turn < limit:
        return {}
    names = [decision.name for decision in node.decisions or ()]
    refused = [name for name in names if _leads_to_agent(spec, node, name)]
    allowed = " or ".join(name for name in names if name not in refused)
    reason = f"turn limit {limit} is reached: {allowed or 'cancel the run'}"
    return dict.fromkeys(refused, reason)


def _leads_to_agent(spec: AiWorkflowSpec, node: Node, decision: str) -> bool:
    edge = _decision_edge(spec, node, decision)
    target = spec.node(edge.target) if edge else None
    return target is not None and target.speaks


def _decision_edge(spec: AiWorkflowSpec, node: Node, decision: str) -> Edge | None:
    return next((edge for edge in spec.ways(node.id) if edge.condition == decision), None)


def _current(spec: AiWorkflowSpec, state: EngineState) -> Place:
    if state.ended:
        raise StateError(f"The run has ended {state.ended}; nothing follows.")
    place = spec.places.get(state.current_node or "")
    if place is None:
        raise StateError(f"The state is at node {state.current_node!r}, which this workflow does not have.")
    return place


def _enter(spec: AiWorkflowSpec, state: EngineState, target: str, words: str | None) -> Step:
    return _went(spec, state, target, words, state.context, state.output, state.answer)


def _went(
    spec: AiWorkflowSpec,
    state: EngineState,
    target: str,
    words: str | None,
    context: Mapping[str, Any],
    output: Any,
    answer: Any,
) -> Step:
    """Enter a node with what the one before it brought: a state is made once for both."""
    place = spec.places.get(target)
    reason = None
    speaks = place is not None and place.speaks
    turn = state.turn + speaks
    if place is None:
        reason = f"there is no node {target!r}"
    elif state.loop_count >= spec.max_loops:
        reason = f"loop limit {spec.max_loops} is reached before node {target!r}"
    elif turn > state.turn_limit:
        reason = f"turn limit {state.turn_limit} is reached before node {target!r}"
    if place is None or reason is not None:
        return _fail(replace(state, context=context, output=output, answer=answer), reason or "")
    entered = state.entered(target, turn, words if speaks else None, context, output, answer)
    return entered, _due(spec, entered, place)


def _follow(spec: AiWorkflowSpec, state: EngineState, edge: Edge | None, words: str | None = None) -> Step:
    if edge is None:
        return _complete(state)
    if edge.ends:
        return _complete(state) if edge.outcome is None else _ended_with(spec, state, edge.outcome)
    return _enter(spec, state, edge.target, words)


def _ended_with(spec: AiWorkflowSpec, state: EngineState, outcome: str) -> Step:
    """End with the outcome of an earlier decision. It must have been made: no run has an outcome of its own accord."""
    made = state.context.get("review", {})
    given = (node.decision(made[node.id]["decision"]) for node in spec.nodes if node.id in made)
    if not any(decision is not None and decision.outcome == outcome for decision in given):
        return _fail(state, f"outcome {outcome!r} cannot be given: no person has decided so")
    return _complete(replace(state, outcome=outcome))


def _branches(state: EngineState, node: Node) -> tuple[Branch, ...]:
    try:
        return fanning.branches(node, state.context, state.turn, state.words)
    except ExpressionError:
        return ()  # nothing is to be done; `_joined` says why, and the node fails


def _joined(spec: AiWorkflowSpec, state: EngineState, place: Place, outcome: Joined) -> Step:
    node = place.node
    try:
        due = fanning.branches(node, state.context, state.turn, state.words)
    except ExpressionError as error:
        return _failed(spec, state, node, str(error))
    value = fanning.joined(node, due, outcome.results)
    reason = fanning.failure(due, outcome.results)
    if reason is None:
        return _stored(spec, state, place, value)
    if spec.rescue(node.id) is not None:  # who catches it gets what the other branches brought
        state = replace(state, context={**state.context, node.output_key or node.id: settled(value)})
    return _failed(spec, state, node, reason)


def _stored(spec: AiWorkflowSpec, state: EngineState, place: Place, value: Any) -> Step:
    context, output, answer = state.context, state.output, state.answer
    if place.key is not None:
        output = settled(value)
        context = {**context, place.key: output}
        answer = output if place.type == "AGENT" else answer
    try:
        way = _way(place, context)
    except ExpressionError as error:
        state = replace(state, context=context, output=output, answer=answer)
        return _fail(state, f"no edge out of node {place.id!r} can be chosen: {error}")
    if way is not None and way.target is not None:
        return _went(spec, state, way.target, None, context, output, answer)
    state = replace(state, context=context, output=output, answer=answer)
    if way is None and place.ways:
        return _fail(state, _unmatched(place, value))
    return _follow(spec, state, way.edge if way else None)


def _unmatched(place: Place, value: Any) -> str:
    """That no edge fits, with the conditions that were tried and what the node brought, both shortened."""
    tried = [shown(way.condition, _SHOWN) for way in place.ways]
    more = f" and {len(tried) - _TRIED} more" if len(tried) > _TRIED else ""
    return f"no edge out of node {place.id!r} matches {', '.join(tried[:_TRIED])}{more}; it gave {shown(value, _SHOWN)}"


def _way(place: Place, context: Mapping[str, Any]) -> Way | None:
    for way in place.ways:
        if way.free or (way.condition != "false" and expressions.holds(way.condition, context)):
            return way
    return None


def _branched(spec: AiWorkflowSpec, state: EngineState, place: Place, value: Any) -> Step:
    if not isinstance(value, bool):
        return _failed(spec, state, place.node, f"the condition gave {value!r:.100}, not true or false")
    name = "true" if value else "false"
    for way in place.ways:
        if way.condition == name:
            return _follow(spec, state, way.edge) if way.target is None else _enter(spec, state, way.target, None)
    return _fail(state, f"no edge out of node {place.id!r} matches {name}")


def _decided(spec: AiWorkflowSpec, state: EngineState, node: Node, made: Decided) -> Step:
    decision, edge = node.decision(made.decision), _decision_edge(spec, node, made.decision)
    if decision is None or edge is None:
        raise StateError(f"Node {node.id!r} has no decision {made.decision!r}.")
    if refused := refusals(spec, state).get(made.decision):
        raise StateError(f"Decision {made.decision!r} is refused: {refused}.")
    said = {"decision": made.decision, "reason": made.reason, "reviewer": made.reviewer}
    review = {**state.context.get("review", {}), node.id: said}
    state = replace(state, context={**state.context, "review": review})
    if edge.ends:
        return _complete(replace(state, outcome=decision.outcome))
    return _follow(spec, state, edge, made.reason if made.reason.strip() else None)


def _failed(spec: AiWorkflowSpec, state: EngineState, node: Node, error: str) -> Step:
    edge = spec.rescue(node.id)
    if edge is None:
        return _fail(state, error)
    errors = {**state.context.get("errors", {}), node.id: error}
    return _follow(spec, replace(state, context={**state.context, "errors": errors}), edge)


def _complete(state: EngineState) -> Step:
    state = replace(state, ended="COMPLETED", words=None)
    return state, Complete(state.outcome, state.output)


def _fail(state: EngineState, reason: str) -> Step:
    state = replace(state, ended="FAILED", reason=reason, words=None)
    return state, Fail(reason, state.current_node)
