"""The engine's state as it was when a visit was entered, from what is recorded of the visits before it.

It moves like this. The engine is asked what is due; the next recorded visit must be that very one; what is recorded of
it is turned back into its outcome, the inverse of `fanning.value_of`; the engine takes it and says what is due next.
So a state is never put together by hand, and records that do not fit the graph are found out and not guessed around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from casework.errors import ExpressionError, StateError
from casework.graph import commands, engine, fanning
from casework.graph.commands import Answered, Decided, Ended, Joined, NodeFailed, Outcome, Result, Returned
from casework.graph.manifests import FANS, AiWorkflowSpec, Node, Vertex
from casework.graph.state import EngineState


@dataclass(frozen=True)
class Recorded:
    """A visit as it is recorded: its path, and how it ended (`failed` is the reason). `ended` False: it has not.

    `values` are what it stored, by key, `decided` is the decision of a person that it ended with.
    """

    path: str
    ended: bool = True
    failed: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    decided: Decided | None = None

    @property
    def node(self) -> str:
        """The node that was visited."""
        return self.path.rpartition(".")[0]


def recall(spec: AiWorkflowSpec, begun: engine.Step, visits: Iterable[Recorded], path: str) -> EngineState:
    """The state in which the visit at `path` was entered. `begun` is where the first of `visits` was due.

    Raises:
        StateError: the records are not those of a walk through this graph, or lack how a visit ended.
    """
    state, command = begun
    for visit in visits:
        if isinstance(command, (commands.Complete, commands.Fail)):
            raise _unfit(visit.path, "the run has ended before it")
        due = f"{command.node}.{command.visit}"
        if visit.path != due:
            raise _unfit(visit.path, f"{due} is due there")
        if visit.path == path:
            return state
        state, command = _after(spec, state, command, visit)
    raise StateError(f"No visit {path} is recorded.")


def key_of(node: Node) -> str | None:
    """The key under which a node's output is in the context; None where it stores none."""
    if node.type in ("CONDITION", "HUMAN_APPROVAL"):
        return None
    return node.output_key if node.type == "WAIT" else node.output_key or node.id


@dataclass(frozen=True)
class Last:
    """Under which keys the last answer of an agent is, and the last output of any node; None where there is none."""

    answer: str | None = None
    output: str | None = None


def edited(state: EngineState, edits: Mapping[str, Any], last: Last) -> EngineState:
    """`state` with other values in its context. What a reviewer is asked about, and the last output, follow with it."""
    changed: dict[str, Any] = {"context": {**state.context, **edits}}
    if last.answer is not None and last.answer in edits:
        changed["answer"] = edits[last.answer]
    if last.output is not None and last.output in edits:
        changed["output"] = edits[last.output]
    plain: dict[str, Any] = {**state.to_plain(), **changed}
    return EngineState.from_plain(plain)


def _unfit(path: str, why: str) -> StateError:
    return StateError(f"The records of the run do not tell how it came to {path}: {why}.")


def _after(spec: AiWorkflowSpec, state: EngineState, command: commands.Due, visit: Recorded) -> engine.Step:
    node = spec.node(command.node)
    if node is not None and node.type in FANS and visit.failed is not None:
        # What an edge that catches a failed join was given.
        state = replace(state, context={**state.context, **visit.values})
    try:
        return engine.advance(spec, state, _outcome(spec, state, command, visit))
    except StateError as error:
        raise _unfit(visit.path, str(error).rstrip(".")) from None


def _outcome(spec: AiWorkflowSpec, state: EngineState, command: commands.Due, visit: Recorded) -> Outcome:
    """What the visit came back with."""
    node = spec.node(command.node)
    if node is None or not visit.ended:
        raise StateError(f"how {visit.path} ended is not recorded")
    if visit.failed is not None:
        return NodeFailed(visit.failed)
    if isinstance(command, commands.Evaluate):
        return engine.evaluate(command, state)
    if node.type == "HUMAN_APPROVAL":
        if visit.decided is None:
            raise StateError(f"the decision on {visit.path} is not recorded")
        return visit.decided
    key = key_of(node)
    if key is None:
        return commands.TimedOut() if node.signal is None else commands.Signalled()  # its value went nowhere
    if key not in visit.values:
        raise StateError(f"the output of {visit.path} is not recorded")
    return _joined(node, state, visit.values[key]) if node.type in FANS else outcome_of(node, visit.values[key])


def _joined(node: Node, state: EngineState, value: Any) -> Joined:
    try:
        due = fanning.branches(node, state.context, state.turn, state.words)
        each = value if node.type == "MAP" else [value[branch.name] for branch in due]
    except (ExpressionError, KeyError, TypeError) as error:
        raise StateError(f"the output of {node.id} is not that of its branches ({error})") from None
    specs = {made.id: made for made in node.branches or ()}
    return Joined(tuple(outcome_of(specs[branch.name], one) for branch, one in zip(due, each, strict=False)))


def outcome_of(vertex: Vertex, value: Any) -> Result:
    """The outcome that brought `value`: the inverse of `fanning.value_of`.

    Raises:
        StateError: nothing of this vertex brings such a value.
    """
    try:
        match vertex.type:
            case "AGENT":
                return Answered(value)
            case "TOOL":
                return Returned(value)
            case "SUBWORKFLOW":
                return Ended(value["outcome"], value["output"])
            case "HUMAN_APPROVAL":
                return Decided(value["decision"], value["reason"], value["reviewer"])
        return _waited(vertex, value)
    except (KeyError, TypeError) as error:
        raise StateError(f"an output of {vertex.id} is not one of a {vertex.type} ({error})") from None


def _waited(vertex: Vertex, value: Any) -> Result:
    if vertex.signal is None:
        return commands.TimedOut()
    if vertex.duration is None:
        return commands.Signalled(value)
    return commands.TimedOut() if value["timedOut"] else commands.Signalled(value["payload"])
