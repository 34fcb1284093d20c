"""What admission asks of nodes and branches one by one: their fields, references, texts and arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from casework.errors import ExpressionError
from casework.graph import expressions, templates
from casework.graph.json_schemas import schema_problem
from casework.graph.manifests import AiAgent, AiWorkflowSpec, Node, Vertex
from casework.graph.origins import Path
from casework.graph.problems import Problem, not_taken, unknown

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "AGENT": ("agentRef", "outputKey"),
    "TOOL": ("tool", "outputKey"),
    "CONDITION": ("expression",),
    "HUMAN_APPROVAL": ("decisions",),
    "PARALLEL": ("branches", "outputKey"),
    "MAP": ("items", "branches", "outputKey"),
    "SUBWORKFLOW": ("workflowRef", "outputKey"),
    "WAIT": (),
}
"""What a node of each type must have; a branch has no outputKey."""
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "AGENT": ("inputTemplate", "outputSchema"),
    "TOOL": ("arguments",),
    "PARALLEL": ("maxParallel",),
    "MAP": ("maxParallel",),
    "SUBWORKFLOW": ("arguments",),
    "WAIT": ("duration", "signal", "outputKey"),
}
"""What it may have besides."""
ITEM_NAMES = ("item", "index")
"""Names that a branch of a MAP sees besides."""

_CEL_WORDS = (
    "as break const continue else false for function if import in let loop namespace null package return true var void "
    "while bool bytes double duration dyn int list map null_type string timestamp type uint has size compare"
)
_LIQUID_WORDS = "and or not contains nil empty blank forloop"
RESERVED_KEYS = frozenset((*expressions.CONTEXT_NAMES, *_CEL_WORDS.split(" "), *_LIQUID_WORDS.split(" ")))
"""Names that an outputKey cannot have: the context's own, and words of the expression and template languages."""


@dataclass(frozen=True)
class Known:
    """What a workflow may refer to: agents, tools, and the input schemas of workflows and free trees, each by name."""

    agents: Mapping[str, AiAgent]
    tools: Collection[str]
    workflows: Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class _Spot:
    """A vertex that is looked at: what it is called, where it is written, and the names that it sees."""

    vertex: Vertex
    place: str
    path: Path
    names: tuple[str, ...]

    def problem(self, what: str, *path: str | int) -> Problem:
        return Problem(self.place, what, (*self.path, *path))


def node_problems(spec: AiWorkflowSpec, known: Known) -> Iterator[Problem]:
    """What does not hold in the nodes of a graph and their branches."""
    names = (*expressions.CONTEXT_NAMES, *spec.output_keys)
    for at, node in enumerate(spec.nodes):
        spot = _Spot(node, f"node {node.id!r}", ("nodes", at), names)
        yield from _vertex(spot, known)
        yield from _node(spot, node, spec)
        inside = (*names, *ITEM_NAMES) if node.type == "MAP" else names
        for number, branch in enumerate(node.branches or ()):
            place = f"{spot.place}: branch {branch.id!r}"
            inner = _Spot(branch, place, (*spot.path, "branches", number), inside)
            yield from _vertex(inner, known)
            yield from _branch(inner)


def _vertex(spot: _Spot, known: Known) -> Iterator[Problem]:
    yield from _fields(spot)
    yield from _references(spot, known)
    yield from _texts(spot)
    yield from _arguments(spot, known)
    yield from _decision_names(spot)


def _fields(spot: _Spot) -> Iterator[Problem]:
    vertex = spot.vertex
    is_node = isinstance(vertex, Node)
    required = [name for name in REQUIRED[vertex.type] if is_node or name != "outputKey"]
    allowed = [name for name in OPTIONAL.get(vertex.type, ()) if is_node or name != "outputKey"]
    given = vertex.model_dump(by_alias=True).keys() - {"id", "type"}
    for name in required:
        if name not in given or not str(getattr(vertex, _attribute(name)) or "").strip():
            yield spot.problem(f"it is of type {vertex.type} and has no {name}. Add it.")
    for name in sorted(given - {*required, *allowed}):
        yield spot.problem(f"a node of type {vertex.type} takes no {name}. Remove it.", name)
    if vertex.type == "WAIT" and not given & {"duration", "signal"}:
        yield spot.problem("it is of type WAIT and has neither duration nor signal. Add one, or both.")


def _attribute(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _node(spot: _Spot, node: Node, spec: AiWorkflowSpec) -> Iterator[Problem]:
    if node.output_key in RESERVED_KEYS:
        what = f"outputKey {node.output_key!r} is a word of expressions or templates. Choose another."
        yield spot.problem(what, "outputKey")
    if node.output_key in ITEM_NAMES and any(each.type == "MAP" for each in spec.nodes):
        what = f"outputKey {node.output_key!r} is what branches of a MAP call theirs. Choose another."
        yield spot.problem(what, "outputKey")
    if node.type == "MAP" and len(node.branches or ()) > 1:
        yield spot.problem("a MAP has one branch, which is run once for each item. Keep one.", "branches", 1)
    counted = Counter(branch.id for branch in node.branches or ())
    seen: set[str] = set()
    for number, branch in enumerate(node.branches or ()):
        if branch.id in seen:
            what = f"{counted[branch.id]} branches have the id {branch.id!r}. Rename all but one."
            yield spot.problem(what, "branches", number, "id")
        seen.add(branch.id)
    if node.items is not None and node.items.strip():
        check = partial(expressions.check_parses, node.items, spot.names)
        yield from _holds(spot, "items", check)


def _branch(spot: _Spot) -> Iterator[Problem]:
    for number, decision in enumerate(spot.vertex.decisions or ()):
        if decision.outcome is not None:
            what = f"decision {decision.name!r}: in a branch it ends no run, so it takes no outcome. Remove it."
            yield spot.problem(what, "decisions", number, "outcome")


def _decision_names(spot: _Spot) -> Iterator[Problem]:
    counted = Counter(made.name for made in spot.vertex.decisions or ())
    for name, count in counted.items():
        if count > 1:
            at = max(at for at, made in enumerate(spot.vertex.decisions or ()) if made.name == name)
            yield spot.problem(f"several decisions are named {name!r}. Rename all but one.", "decisions", at, "name")


def _references(spot: _Spot, known: Known) -> Iterator[Problem]:
    vertex = spot.vertex
    if vertex.agent_ref is not None and vertex.agent_ref not in known.agents:
        yield spot.problem("agentRef: " + unknown("AiAgent", vertex.agent_ref, known.agents), "agentRef")
    if vertex.tool is not None and vertex.tool not in known.tools:
        yield spot.problem("tool: " + unknown("registered tool", vertex.tool, known.tools), "tool")
    if vertex.workflow_ref is not None and vertex.workflow_ref not in known.workflows:
        said = unknown("workflow or free tree", vertex.workflow_ref, known.workflows)
        yield spot.problem("workflowRef: " + said, "workflowRef")


def _texts(spot: _Spot) -> Iterator[Problem]:
    vertex, names = spot.vertex, spot.names
    if isinstance(vertex, Node) and vertex.expression is not None and vertex.expression.strip():
        yield from _holds(spot, "expression", partial(expressions.check, vertex.expression, names))
    if vertex.input_template is not None:
        yield from _holds(spot, "inputTemplate", partial(templates.check, vertex.input_template, names))
    if vertex.arguments is not None:
        yield from _holds(spot, "arguments", partial(templates.check_all, vertex.arguments, names))
    yield from schema_problems("outputSchema", vertex.output_schema, spot.place, (*spot.path, "outputSchema"))
    for at, decision in enumerate(vertex.decisions or ()):
        path = (*spot.path, "decisions", at, "schema")
        yield from schema_problems(f"decision {decision.name!r}: schema", decision.json_schema, spot.place, path)


def _arguments(spot: _Spot, known: Known) -> Iterator[Problem]:
    """The arguments of a TOOL or SUBWORKFLOW against those that the tool, or the workflow's input, takes."""
    vertex = spot.vertex
    schema: Any = None
    owner = ""
    if vertex.tool is not None and isinstance(known.tools, Mapping):
        schema, owner = known.tools.get(vertex.tool), f"tool {vertex.tool!r}"
    elif vertex.workflow_ref is not None:
        schema, owner = known.workflows.get(vertex.workflow_ref), f"workflow {vertex.workflow_ref!r}"
    if not isinstance(schema, Mapping):
        return
    taken, given = schema.get("properties", {}), vertex.arguments or {}
    for name in given:
        if name not in taken and schema.get("additionalProperties") is False:
            yield spot.problem(f"arguments: {not_taken(owner, name, taken)}", "arguments", name)
    for name in schema.get("required", ()):
        if name not in given:
            yield spot.problem(f"arguments: {owner} needs {name!r}. Add it.", "arguments")


def _holds(spot: _Spot, field: str, check: Callable[[], None]) -> Iterator[Problem]:
    yield from holds(spot.place, field, check, (*spot.path, field))


def holds(place: str, field: str, check: Callable[[], None], path: Path) -> Iterator[Problem]:
    """The problem that an expression or template has, if any."""
    try:
        check()
    except ExpressionError as error:
        yield Problem(place, f"{field}: {error}", path)


def schema_problems(field: str, schema: Mapping[str, Any] | None, place: str, path: Path) -> Iterator[Problem]:
    """The problem that a JSON Schema has, if any."""
    problem = schema_problem(schema) if schema is not None else None
    if problem:
        what = f"{field + ': ' if place else ''}this is no JSON Schema that can be used: {problem}."
        yield Problem(place or field, what, path)
