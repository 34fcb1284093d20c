"""Admission: manifests that hold together become pinned workflows; all others are refused, every problem named.

Nothing is warned about. What is admitted can be run: every name is known, every expression and template parses, every
node is reached and has a way to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from casework.errors import ExpressionError, ManifestError
from casework.graph import expressions, templates
from casework.graph.bundle import PinnedWorkflow
from casework.graph.input_paths import expression_problems, template_problems
from casework.graph.json_schemas import schema_problem
from casework.graph.loading import nearest
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider, Manifest, Node, Resource
from casework.graph.shape import Problem, shape_problems

Kind = TypeVar("Kind", bound=Resource)

_REQUIRED = {
    "AGENT": ("agentRef", "outputKey"),
    "TOOL": ("tool", "outputKey"),
    "CONDITION": ("expression",),
    "HUMAN_APPROVAL": ("decisions",),
}
_OPTIONAL = {"AGENT": ("inputTemplate", "outputSchema"), "TOOL": ("arguments",)}

_CEL_WORDS = (
    "as break const continue else false for function if import in let loop namespace null package return true var void "
    "while bool bytes double duration dyn int list map null_type string timestamp type uint has size compare"
)
_LIQUID_WORDS = "and or not contains nil empty blank forloop"
RESERVED_KEYS = frozenset((*expressions.CONTEXT_NAMES, *_CEL_WORDS.split(" "), *_LIQUID_WORDS.split(" ")))
"""Names that an outputKey cannot have: the context's own, and words of the expression and template languages."""


def admit(
    manifests: Iterable[Manifest], tools: Collection[str], *, scripts: Collection[str] | None = None
) -> list[PinnedWorkflow]:
    """Each workflow of `manifests` with what it refers to, in their order.

    `tools` are the names of the registered tools, or a mapping of each to the JSON Schema of its arguments, by which
    those of TOOL nodes are checked. `scripts` are those of scripted models, None where they are not known.

    Raises:
        ManifestError: something does not hold; lists every problem with the resource and the node.
    """
    found = list(manifests)
    problems: list[str] = []
    workflows = _by_name(found, AiWorkflow, problems)
    agents, providers, of_agents = admit_agents(found, tools, scripts=scripts)
    problems += of_agents
    for workflow in workflows.values():
        problems += _named(workflow, _workflow_problems(workflow, agents, tools))
    if problems:
        head = [] if len(problems) == 1 else [f"{len(problems)} problems:"]
        raise ManifestError("\n".join([*head, *problems]))
    return [_pinned(workflow, agents, providers) for workflow in workflows.values()]


def admit_agents(
    manifests: list[Manifest], tools: Collection[str], *, scripts: Collection[str] | None = None
) -> tuple[dict[str, AiAgent], dict[str, LlmProvider], list[str]]:
    """The agents and providers of `manifests` by name, and every problem with them."""
    problems: list[str] = []
    agents = _by_name(manifests, AiAgent, problems)
    providers = _by_name(manifests, LlmProvider, problems)
    for provider in providers.values():
        problems += _named(provider, _provider_problems(provider, scripts))
    for agent in agents.values():
        problems += _named(agent, _agent_problems(agent, providers, tools))
    return agents, providers, problems


def _by_name(manifests: list[Manifest], kind: type[Kind], problems: list[str]) -> dict[str, Kind]:
    made: dict[str, Kind] = {}
    for manifest in manifests:
        if isinstance(manifest, kind):
            if manifest.name in made:
                problems.append(f"{kind.__name__} {manifest.name!r}: the name is used twice. Rename one.")
            made.setdefault(manifest.name, manifest)
    return made


def _named(resource: Manifest, problems: Iterator[Problem]) -> list[str]:
    return [f"{resource.kind} {resource.name!r}: {place + ': ' if place else ''}{what}" for place, what in problems]


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    there_are = f"there are {', '.join(sorted(known))}" if known else "there are none"
    return f"there is no {what} {name!r}; {there_are}.{nearest(name, known)}"


def _provider_problems(provider: LlmProvider, scripts: Collection[str] | None) -> Iterator[Problem]:
    script = provider.spec.script
    if scripts is not None and script is not None and script not in scripts:
        yield "script", _unknown("script", script, scripts)


def _agent_problems(agent: AiAgent, providers: Mapping[str, LlmProvider], tools: Collection[str]) -> Iterator[Problem]:
    spec = agent.spec
    provider = providers.get(spec.provider)
    if provider is None:
        yield "provider", _unknown("LlmProvider", spec.provider, providers)
    elif provider.spec.type != "scripted" and not (spec.model or provider.spec.default_model):
        yield "model", f"it names no model and provider {spec.provider!r} has no defaultModel. Add one of the two."
    for name in dict.fromkeys(spec.tools):
        if name not in tools:
            yield "tools", _unknown("registered tool", name, tools)
        if spec.tools.count(name) > 1:
            yield "tools", f"{name!r} stands there twice. Remove one."
    yield from _schema("outputSchema", spec.output_schema)


def _workflow_problems(
    workflow: AiWorkflow, agents: Mapping[str, AiAgent], tools: Collection[str]
) -> Iterator[Problem]:
    spec = workflow.spec
    names = (*expressions.CONTEXT_NAMES, *spec.output_keys)
    yield from _schema("input", spec.input)
    if spec.input is not None and spec.input.get("type", "object") != "object":
        yield "input", f"a run's input is an object, and the schema's type is {spec.input['type']!r}. Make it object."
    for node in spec.nodes:
        place = f"node {node.id!r}"
        yield from _fields(node, place)
        yield from _references(node, place, agents, tools)
        yield from _texts(node, place, names)
        yield from _inputs(node, place, spec.input)
        if isinstance(tools, Mapping):
            yield from _arguments(node, place, tools)
    for edge in spec.edges:
        source = spec.node(edge.source)
        condition = edge.condition.strip()
        if source and source.type in ("AGENT", "TOOL") and condition not in ("", "true", "false") and not edge.on_error:
            place = f"edge from {edge.source!r} to {edge.target!r}"
            yield from _holds(place, "condition", partial(expressions.check, condition, names))
            yield from ((place, f"condition: {what}.") for what in expression_problems(condition, spec.input))
    yield from shape_problems(spec)


def _fields(node: Node, place: str) -> Iterator[Problem]:
    required, allowed = _REQUIRED[node.type], _OPTIONAL.get(node.type, ())
    given = node.model_dump(by_alias=True).keys() - {"id", "type"}
    for name in required:
        if name not in given or not str(getattr(node, _attribute(name)) or "").strip():
            yield place, f"it is of type {node.type} and has no {name}. Add it."
    for name in sorted(given - {*required, *allowed}):
        yield place, f"a node of type {node.type} takes no {name}. Remove it."
    if node.output_key in RESERVED_KEYS:
        yield place, f"outputKey {node.output_key!r} is a word of expressions or templates. Choose another."


def _attribute(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _references(node: Node, place: str, agents: Mapping[str, AiAgent], tools: Collection[str]) -> Iterator[Problem]:
    if node.agent_ref is not None and node.agent_ref not in agents:
        yield place, "agentRef: " + _unknown("AiAgent", node.agent_ref, agents)
    if node.tool is not None and node.tool not in tools:
        yield place, "tool: " + _unknown("registered tool", node.tool, tools)


def _texts(node: Node, place: str, names: Collection[str]) -> Iterator[Problem]:
    expression, template, arguments = node.expression, node.input_template, node.arguments
    if expression is not None and expression.strip():
        yield from _holds(place, "expression", partial(expressions.check, expression, names))
    if template is not None:
        yield from _holds(place, "inputTemplate", partial(templates.check, template, names))
    if arguments is not None:
        yield from _holds(place, "arguments", partial(templates.check_all, arguments, names))
    yield from _schema("outputSchema", node.output_schema, place)
    for decision in node.decisions or ():
        yield from _schema(f"decision {decision.name!r}: schema", decision.json_schema, place)


def _inputs(node: Node, place: str, schema: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Names of the input that its schema rules out."""
    for what in expression_problems(node.expression or "", schema):
        yield place, f"expression: {what}."
    for field, value in (("inputTemplate", node.input_template), ("arguments", node.arguments)):
        for text in templates.texts(value):
            yield from ((place, f"{field}: {what}.") for what in template_problems(_paths(text), schema))


def _paths(template: str) -> Collection[tuple[Any, ...]]:
    try:
        return templates.paths(template)
    except ExpressionError:
        return ()  # said where the template is checked


def _arguments(node: Node, place: str, tools: Mapping[str, Any]) -> Iterator[Problem]:
    """A TOOL node's arguments against those that its tool takes."""
    schema = tools.get(node.tool) if node.tool is not None else None
    if not isinstance(schema, Mapping):
        return
    known, given = schema.get("properties", {}), node.arguments or {}
    for name in given:
        if name not in known and schema.get("additionalProperties") is False:
            yield place, f"arguments: {_unknown(f'argument of tool {node.tool!r}', name, known)}"
    for name in schema.get("required", ()):
        if name not in given:
            yield place, f"arguments: tool {node.tool!r} needs {name!r}. Add it."


def _holds(place: str, field: str, check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except ExpressionError as error:
        yield place, f"{field}: {error}"


def _schema(field: str, schema: Mapping[str, Any] | None, place: str = "") -> Iterator[Problem]:
    problem = schema_problem(schema) if schema is not None else None
    if problem:
        yield place or field, f"{field + ': ' if place else ''}this is no JSON Schema that can be used: {problem}."


def _pinned(
    workflow: AiWorkflow, agents: Mapping[str, AiAgent], providers: Mapping[str, LlmProvider]
) -> PinnedWorkflow:
    used = {node.agent_ref: agents[node.agent_ref] for node in workflow.spec.nodes if node.agent_ref}
    return PinnedWorkflow(
        workflow, used, {agent.spec.provider: providers[agent.spec.provider] for agent in used.values()}
    )
