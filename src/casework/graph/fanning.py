"""Vertices of the graph as commands, their outcomes as values, and the branches of PARALLEL and MAP nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casework.errors import ExpressionError, StateError, UnserialisableError
from casework.graph import expressions
from casework.graph.commands import (
    Answered,
    AwaitDecision,
    Branch,
    Decided,
    Ended,
    NodeFailed,
    Outcome,
    Result,
    Returned,
    RunAgent,
    RunSubworkflow,
    RunTool,
    Signalled,
    TimedOut,
    Wait,
    Work,
)
from casework.graph.manifests import Node, Vertex
from casework.values import Plain, settled, shortened

MAX_ITEMS = 1000
"""Most items of a MAP."""
TOLD_BRANCHES = 50
"""Failed branches that a reason names; the others are counted."""
_TOLD_CHARACTERS = 2000

_FITTING: Mapping[str, tuple[type[Outcome], ...]] = {
    "AGENT": (Answered,),
    "TOOL": (Returned,),
    "HUMAN_APPROVAL": (Decided,),
    "SUBWORKFLOW": (Ended,),
    "WAIT": (Signalled, TimedOut),
}


def work(
    vertex: Vertex, visit: int, turn: int, words: str | None, *, render: bool, refused: Mapping[str, str] | None = None
) -> Work:
    """The command of a vertex that does something outside."""
    if vertex.type == "AGENT":
        return RunAgent(vertex.id, visit, turn, words, render)
    if vertex.type == "TOOL":
        return RunTool(vertex.id, visit)
    if vertex.type == "SUBWORKFLOW":
        return RunSubworkflow(vertex.id, visit, vertex.workflow_ref or "")
    if vertex.type == "WAIT":
        return Wait(vertex.id, visit, vertex.duration_s, vertex.signal)
    return AwaitDecision(vertex.id, visit, tuple(made.name for made in vertex.decisions or ()), refused or {})


def branches(node: Node, context: Mapping[str, Any], turn: int, words: str | None) -> tuple[Branch, ...]:
    """The branches of a visit: those written down, or the one of a MAP for each item.

    Raises:
        ExpressionError: the items of a MAP cannot be had, are no list, or too many.
    """
    made = node.branches or ()
    if node.type == "PARALLEL":
        return tuple(Branch(each.id, 1, work(each, 1, turn, words, render=True)) for each in made)
    (each,) = made
    return tuple(
        Branch(each.id, index + 1, work(each, index + 1, turn, words, render=True), item, index)
        for index, item in enumerate(_items(node, context))
    )


def _items(node: Node, context: Mapping[str, Any]) -> list[Plain]:
    try:
        found = settled(expressions.value_of(node.items or "", context))
    except UnserialisableError as error:
        raise ExpressionError(f"items: {error}") from None
    if not isinstance(found, list):
        raise ExpressionError(f"items gave {shortened(repr(found), 100)}, not a list. Correct the expression.")
    if len(found) > MAX_ITEMS:
        raise ExpressionError(f"items gave {len(found)} items; at most {MAX_ITEMS}. Split the work.")
    return found


def value_of(vertex: Vertex, outcome: Result) -> Any:
    """What an outcome brings to the context.

    Raises:
        StateError: it does not answer a vertex of this type, or is a failure.
    """
    _check_fitting(vertex, outcome)
    match outcome:
        case Answered(output):
            return output
        case Returned(result):
            return result
        case Decided(decision, reason, reviewer):
            _check_decision(vertex, decision)
            return {"decision": decision, "reason": reason, "reviewer": reviewer}
        case Ended(ended, output):
            return {"outcome": ended, "output": output}
    return _waited(vertex, outcome)


def _waited(vertex: Vertex, outcome: Result) -> Any:
    payload = outcome.payload if isinstance(outcome, Signalled) else None
    if vertex.duration is None or vertex.signal is None:
        return payload
    return {"timedOut": isinstance(outcome, TimedOut), "payload": payload}


def _check_fitting(vertex: Vertex, outcome: Outcome) -> None:
    fitting = _FITTING.get(vertex.type, ())
    if vertex.type == "WAIT":
        needs = {Signalled: vertex.signal, TimedOut: vertex.duration}
        fitting = tuple(kind for kind in fitting if needs.get(kind) is not None)
    if not isinstance(outcome, fitting):
        names = ", ".join(kind.__name__ for kind in (*fitting, NodeFailed))
        raise StateError(
            f"{type(outcome).__name__} does not answer node {vertex.id!r} of type {vertex.type}: give one of {names}."
        )


def _check_decision(vertex: Vertex, name: str) -> None:
    if vertex.decision(name) is None:
        raise StateError(f"Node {vertex.id!r} has no decision {name!r:.100}.")


def joined(node: Node, due: Sequence[Branch], results: Sequence[Result]) -> Any:
    """The value of a PARALLEL or MAP: an object by branch, or a list by item. A branch that failed brings None.

    Raises:
        StateError: the results are not those of the branches that were due.
    """
    if len(results) != len(due):
        raise StateError(f"Node {node.id!r} has {len(due)} branches and got {len(results)} results. Give one of each.")
    specs = {each.id: each for each in node.branches or ()}
    values = [
        None if isinstance(result, NodeFailed) else value_of(specs[branch.name], result)
        for branch, result in zip(due, results, strict=True)
    ]
    return values if node.type == "MAP" else {branch.name: value for branch, value in zip(due, values, strict=True)}


def failure(due: Sequence[Branch], results: Sequence[Result]) -> str | None:
    """Why a join fails: each failed branch with its reason, in order; None where none failed."""
    pairs = zip(due, results, strict=True)
    failed = [(branch.step, result.error) for branch, result in pairs if isinstance(result, NodeFailed)]
    return _reason(failed, len(due)) if failed else None


def _reason(failed: Sequence[tuple[str, str]], of: int) -> str:
    told = failed[:TOLD_BRANCHES]
    each = max(_TOLD_CHARACTERS // len(told), 40)
    said = "; ".join(f"{step}: {shortened(error, each)}" for step, error in told)
    more = f"; and {len(failed) - len(told)} more" if len(failed) > len(told) else ""
    return f"{len(failed)} of {of} branches failed: {said}{more}"
