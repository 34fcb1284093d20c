"""What a fork takes over and where it begins, decided from the rows of its source; nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casework.agents.toolbox import Toolbox
from casework.api.fork_edits import INPUT, check_context, check_node
from casework.api.fork_source import Source, visit_of
from casework.durable.contracts import Fork
from casework.errors import StateError
from casework.graph import keeping
from casework.graph.bundle import PinnedWorkflow
from casework.graph.keeping import MessageSeen, StepSeen
from casework.graph.lent import gives, lent_end
from casework.graph.manifests import FANS, Node
from casework.graph.recall import Recorded, edited
from casework.graph.state import EngineState
from casework.store.forks import Taken
from casework.store.rows import StepRow
from casework.values import Plain


@dataclass(frozen=True)
class Wanted:
    """How the fork is to differ: the version with its graph, and edited values of the context by key."""

    version: int
    pinned: PinnedWorkflow
    edits: Mapping[str, Plain]


@dataclass(frozen=True)
class Plan:
    """The fork that is to be: its origin, its state at the beginning, its input, and the rows that it takes over.

    `position` is the last of the transcript before the visit.
    """

    fork: Fork
    state: EngineState
    request: Any
    taken: Taken
    position: int


def planned(source: Source, wanted: Wanted, step: str | None, tools: Toolbox) -> Plan:
    """The plan of a fork from `step`, or from where the run last was.

    Raises:
        NotFoundError: there is no such step.
        StateError: the run cannot be forked there; the message says why and what to do.
        FieldsError: an edit does not hold.
    """
    path = source.named(step)
    visit = visit_of(path)
    state = source.state_at(visit)
    node = check_node(wanted.pinned, wanted.version, visit.rpartition(".")[0])
    _check_ends(source, wanted, visit, state)
    request = wanted.edits.get(INPUT, source.row.request)
    # Another version may want another input than the one that the run has.
    asked = {} if wanted.version == source.row.workflow_version else {INPUT: request}
    check_context(wanted.pinned, {**asked, **wanted.edits})
    anew = _anew(source, wanted, node, step is None or path != visit)
    kept = frozenset[str]() if anew or path == step == visit else _kept(source, visit, step)
    taken, position = _taken(source, visit, kept, wanted.edits)
    _check_tools([each for each in taken.steps if each.path in kept], tools)
    _check_places(source, taken, kept, position)
    fork = Fork(str(source.row.run_id), path, visit, tuple(sorted(wanted.edits)), len(kept), anew)
    return Plan(fork, edited(state, wanted.edits, source.last_before(visit)), request, taken, position)


def _check_ends(source: Source, wanted: Wanted, visit: str, state: EngineState) -> None:
    """That no end of the fork needs a decision that was made before it begins, since none is taken over."""
    spec = wanted.pinned.workflow.spec
    edge = lent_end(spec, state)
    if edge is None:
        return
    before = source.order[: source.order.index(visit)]
    asked = [each.path for each in source.visits if each.path in before and _decided_so(source, each, edge.outcome)]
    there = f"Fork from {asked[-1]}" if asked else f"Fork run {source.row.forked_from_run_id} from where it was decided"
    raise StateError(
        f"A fork from {visit} may end by the edge from {edge.source!r} with outcome {edge.outcome!r}, which a person "
        "decided before that. Decisions are not taken over, so the fork would fail there, with all that it did on the "
        f"way. {there}, and a person decides anew.",
        details={"step": visit},
    )


def _decided_so(source: Source, visit: Recorded, outcome: str | None) -> bool:
    node = source.pinned.workflow.spec.node(visit.node)
    return node is not None and visit.decided is not None and gives(node, visit.decided.decision, outcome)


def _anew(source: Source, wanted: Wanted, node: Node, inside: bool) -> str:
    """Why no step of the visit is kept; "" where some may be, or none was asked for."""
    before = source.pinned.workflow.spec.node(node.id)
    if not inside:
        return ""
    if node.type in FANS:
        return f"branches of a {node.type} are asked side by side, so the visit begins anew as a whole"
    if wanted.edits:
        return "the context was edited, so the visit begins anew as a whole"
    same = before is not None and all(
        getattr(before, part) == getattr(node, part) for part in ("type", "agent_ref", "input_template")
    )
    return "" if same else f"version {wanted.version} opens this visit otherwise, so it begins anew as a whole"


def _kept(source: Source, visit: str, step: str | None) -> frozenset[str]:
    inside = f"{visit}/"
    steps = [StepSeen(each.path, each.kind, each.state) for each in source.steps if each.path.startswith(inside)]
    messages = [
        MessageSeen(each.path, each.position, each.role) for each in source.messages if each.path.startswith(inside)
    ]
    before = {each.path for each in steps if step is not None and f"{each.path}/".startswith(f"{step}/")}
    return keeping.kept(steps, messages, before)


def _taken(source: Source, visit: str, kept: frozenset[str], edits: Mapping[str, Plain]) -> tuple[Taken, int]:
    later = source.from_visit(visit)

    def past(path: str) -> bool:
        return visit_of(path) not in later

    steps = [
        step
        for step in source.steps
        if step.path in kept or (past(step.path) and step.kind != "decision" and step.state != "STARTED")
    ]
    messages = [each for each in source.messages if past(each.path) or each.path in kept]
    outputs = [each for each in source.outputs if past(each.path) and not (each.path == "" and each.key in edits)]
    position = max((each.position for each in messages if past(each.path)), default=0)
    return Taken(steps, messages, outputs), position


def _check_tools(steps: list[StepRow], tools: Toolbox) -> None:
    """That the ledger would know each kept call again: by name, arguments, and the version of the tool."""
    for step in steps:
        tool = tools.find(step.name) if step.kind == "tool" and step.hash is not None else None
        version = None if tool is None else tool.version
        if step.kind == "tool" and step.hash is not None and version != step.tool_version:
            now = "is not there any more" if tool is None else f"has version {version} by now"
            raise StateError(
                f"Step {step.path} was done by version {step.tool_version} of tool {step.name!r}, which {now}, so its "
                f"result cannot be kept. Fork from that step, or from one before it.",
                details={"step": step.path},
            )


def _check_places(source: Source, taken: Taken, kept: frozenset[str], position: int) -> None:
    """That the visit's messages follow those before it: a model call is known again by where it was asked."""
    first = min((each.position for each in taken.messages if each.path in kept), default=position + 1)
    if first != position + 1:
        raise StateError(
            f"The transcript of run {source.row.run_id} has no message at position {position + 1}, so no step of this "
            "visit can be kept. Fork from the visit itself."
        )
