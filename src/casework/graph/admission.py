"""Admission: manifests that hold together become pinned workflows; all others are refused, every problem named.

Nothing is warned about here (see `input_uses.hints`). What is admitted can be run: every name is known, every
expression and template parses, every node is reached and has a way to an end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from casework.errors import ManifestError
from casework.graph import expressions
from casework.graph.bundle import TREE, PinnedWorkflow
from casework.graph.input_uses import input_problems
from casework.graph.manifests import FANS, AiAgent, AiWorkflow, LlmProvider, Manifest, Resource
from casework.graph.node_rules import Known, holds, node_problems, schema_problems
from casework.graph.problems import Problem, named, unknown
from casework.graph.references import below, circle_problems, referred
from casework.graph.segments import quick_tools
from casework.graph.shape import shape_problems
from casework.values import Plain, dumps, loads

Kind = TypeVar("Kind", bound=Resource)
_OPEN_ENDED = ("AGENT", "TOOL", "SUBWORKFLOW", "WAIT", *FANS)
"""Types of nodes whose edges have expressions for conditions."""


def admit(
    manifests: Iterable[Manifest],
    tools: Collection[str],
    *,
    scripts: Collection[str] | None = None,
    trees: Mapping[str, Mapping[str, Plain]] | None = None,
    quick: Collection[str] = (),
) -> list[PinnedWorkflow]:
    """Each workflow of `manifests` with what it refers to, in their order.

    `tools` are the names of the registered tools, or a mapping of each to the JSON Schema of its arguments, by which
    those of TOOL nodes are checked. `scripts` are those of scripted models, None where they are not known. `trees` are
    the pinned free trees that SUBWORKFLOW nodes may refer to besides workflows, as plain bundles by name. `quick` are
    the tools that may be called again without more ado (`Toolbox.quick`): chains of their nodes may share an activity.

    Raises:
        ManifestError: something does not hold; lists every problem with the resource and the node.
    """
    found = list(manifests)
    problems: list[str] = []
    workflows = _by_name(found, AiWorkflow, problems)
    agents, providers, of_agents = admit_agents(found, tools, scripts=scripts)
    problems += of_agents
    calls = {name: referred(workflow.spec) for name, workflow in workflows.items()}
    schemas = {name: made[TREE].get("input") for name, made in (trees or {}).items()}
    known = Known(agents, tools, {**schemas, **{name: made.spec.input for name, made in workflows.items()}})
    for workflow in workflows.values():
        problems += named(workflow, _workflow_problems(workflow, known))
        problems += named(workflow, circle_problems(workflow, calls))
    if problems:
        head = [] if len(problems) == 1 else [f"{len(problems)} problems:"]
        raise ManifestError("\n".join([*head, *problems]))
    alone = {name: _alone(workflow, agents, providers, quick) for name, workflow in workflows.items()}
    plain = dict(trees or {})
    if any(calls.values()):  # through JSON and back: what is pinned now equals what is read from where it is kept
        plain |= {name: loads(dumps(made.to_plain())) for name, made in alone.items()}
    return [replace(made, workflows={each: plain[each] for each in below(name, calls)}) for name, made in alone.items()]


def admit_agents(
    manifests: list[Manifest], tools: Collection[str], *, scripts: Collection[str] | None = None
) -> tuple[dict[str, AiAgent], dict[str, LlmProvider], list[str]]:
    """The agents and providers of `manifests` by name, and every problem with them."""
    problems: list[str] = []
    agents = _by_name(manifests, AiAgent, problems)
    providers = _by_name(manifests, LlmProvider, problems)
    for provider in providers.values():
        problems += named(provider, _provider_problems(provider, scripts))
    for agent in agents.values():
        problems += named(agent, _agent_problems(agent, providers, tools))
    return agents, providers, problems


def _by_name(manifests: list[Manifest], kind: type[Kind], problems: list[str]) -> dict[str, Kind]:
    made: dict[str, Kind] = {}
    for manifest in manifests:
        if isinstance(manifest, kind):
            if manifest.name in made:
                at = "" if manifest.origin is None else f"{manifest.origin.at(('metadata', 'name'))}: "
                problems.append(f"{at}{kind.__name__} {manifest.name!r}: the name is used twice. Rename one.")
            made.setdefault(manifest.name, manifest)
    return made


def _provider_problems(provider: LlmProvider, scripts: Collection[str] | None) -> Iterator[Problem]:
    script = provider.spec.script
    if scripts is not None and script is not None and script not in scripts:
        yield Problem("script", unknown("script", script, scripts), ("script",))


def _agent_problems(agent: AiAgent, providers: Mapping[str, LlmProvider], tools: Collection[str]) -> Iterator[Problem]:
    spec = agent.spec
    provider = providers.get(spec.provider)
    if provider is None:
        yield Problem("provider", unknown("LlmProvider", spec.provider, providers), ("provider",))
    elif provider.spec.type != "scripted" and not (spec.model or provider.spec.default_model):
        what = f"it names no model and provider {spec.provider!r} has no defaultModel. Add one of the two."
        yield Problem("model", what, ("model",))
    for name in dict.fromkeys(spec.tools):
        places = [at for at, each in enumerate(spec.tools) if each == name]
        if name not in tools:
            yield Problem("tools", unknown("registered tool", name, tools), ("tools", places[0]))
        if len(places) > 1:
            yield Problem("tools", f"{name!r} stands there twice. Remove one.", ("tools", places[1]))
    yield from schema_problems("outputSchema", spec.output_schema, "", ("outputSchema",))


def _workflow_problems(workflow: AiWorkflow, known: Known) -> Iterator[Problem]:
    spec = workflow.spec
    yield from schema_problems("input", spec.input, "", ("input",))
    if spec.input is not None and spec.input.get("type", "object") != "object":
        what = f"a run's input is an object, and the schema's type is {spec.input['type']!r}. Make it object."
        yield Problem("input", what, ("input", "type"))
    yield from node_problems(spec, known)
    yield from _edge_conditions(workflow)
    yield from input_problems(spec, spec.input)
    yield from shape_problems(spec)


def _edge_conditions(workflow: AiWorkflow) -> Iterator[Problem]:
    spec = workflow.spec
    names = (*expressions.CONTEXT_NAMES, *spec.output_keys)
    for at, edge in enumerate(spec.edges):
        source, condition = spec.node(edge.source), edge.condition.strip()
        if not source or source.type not in _OPEN_ENDED or condition in ("", "true", "false") or edge.on_error:
            continue
        place, path = f"edge from {edge.source!r} to {edge.target!r}", ("edges", at, "condition")
        yield from holds(place, "condition", partial(expressions.check, condition, names), path)


def _alone(
    workflow: AiWorkflow,
    agents: Mapping[str, AiAgent],
    providers: Mapping[str, LlmProvider],
    quick: Collection[str],
) -> PinnedWorkflow:
    """The workflow pinned without those that it refers to."""
    used: dict[str, AiAgent] = {
        each.agent_ref: agents[each.agent_ref] for each in workflow.spec.vertices if each.agent_ref
    }
    of_agents: dict[str, Any] = {agent.spec.provider: providers[agent.spec.provider] for agent in used.values()}
    return PinnedWorkflow(workflow, used, of_agents, quick=quick_tools(workflow.spec, quick))
