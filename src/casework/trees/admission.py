"""Admission of free trees: what is admitted can be run, as with workflows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from casework.errors import ManifestError
from casework.graph.admission import admit_agents
from casework.graph.json_schemas import schema_problem
from casework.graph.manifests import AiWorkflow, Manifest
from casework.trees.bundle import PinnedTree
from casework.trees.definition import FreeTree


def admit_tree(
    tree: FreeTree, manifests: Iterable[Manifest], tools: Collection[str], *, scripts: Collection[str] | None = None
) -> PinnedTree:
    """A tree with the agents and providers of `manifests`, which are its own.

    Raises:
        ManifestError: something does not hold; lists every problem.
    """
    found = list(manifests)
    problems = [f"{one.name!r} is a workflow. Give it to the App." for one in found if isinstance(one, AiWorkflow)]
    agents, providers, of_agents = admit_agents(found, tools, scripts=scripts)
    problems += of_agents
    for agent in agents.values():
        if agent.spec.tools:
            problems.append(
                f"AiAgent {agent.name!r}: it lists tools, and an agent of a free tree gets none: the tree itself calls "
                "tools. Take an agent without tools."
            )
    schema = tree.input_schema
    problem = None if schema is None else schema_problem(schema)
    if problem:
        problems.append(f"input: this is no JSON Schema that can be used: {problem}.")
    elif schema is not None and schema.get("type", "object") != "object":
        problems.append(f"input: a run's input is an object, and the schema's type is {schema['type']!r}.")
    if problems:
        raise ManifestError("\n".join(f"Free tree {tree.name!r}: {problem}" for problem in problems))
    return PinnedTree(tree.name, tree.version, agents, providers, schema, tree.max_events)
