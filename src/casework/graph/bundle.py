"""A workflow with everything it refers to, as one immutable thing that a run is pinned to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from casework.errors import ManifestError
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider, Vertex
from casework.graph.references import below, referred
from casework.values import Plain, content_hash

TREE = "tree"
"""The member by which a plain bundle is known as a free tree's."""


@dataclass(frozen=True)
class PinnedWorkflow:
    """A workflow, the agents of its nodes and the providers of those agents, each by name.

    `workflows` are all that its SUBWORKFLOW nodes refer to, directly or through others: plain bundles of workflows and
    free trees by name, none of which holds others. `sub_bundle` makes one whole.

    `quick` are tools of TOOL nodes that could be called again without more ado when this was admitted, where chains of
    such nodes may share an activity. It is empty in bundles that are older than such chains.
    """

    workflow: AiWorkflow
    agents: Mapping[str, AiAgent]
    providers: Mapping[str, LlmProvider]
    workflows: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    quick: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self.workflow.name

    @property
    def input_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of a run's input, or None."""
        return self.workflow.spec.input

    @property
    def policy_adoption(self) -> Literal["pinned", "next_turn"]:
        """Which version of a policy counts for an open run."""
        return self.workflow.spec.policy_adoption

    def hash(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits: equal content, equal hash."""
        return content_hash(self.to_plain())

    def agent_of(self, node: Vertex) -> AiAgent:
        """The agent of an AGENT node or branch.

        Raises:
            KeyError: the node refers to no agent of this bundle, which admission refuses.
        """
        return self.agents[node.agent_ref or ""]

    def output_schema(self, node: Vertex) -> dict[str, Any] | None:
        """The JSON Schema of the node's output: its own, else its agent's."""
        if node.output_schema is not None or node.agent_ref is None:
            return node.output_schema
        return self.agent_of(node).spec.output_schema

    def sub_bundle(self, name: str) -> dict[str, Plain]:
        """The plain bundle of a workflow or free tree that is referred to, with all that it refers to itself.

        It is what its own `to_plain` would give, so it has the hash under which it is published.

        Raises:
            KeyError: nothing of that name is in this bundle.
        """
        made = dict(self.workflows[name])
        calls = {each: _calls(plain) for each, plain in self.workflows.items()}
        own = {each: dict(self.workflows[each]) for each in sorted(below(name, calls))}
        return {**made, "workflows": own} if own else made

    def to_plain(self) -> dict[str, Plain]:
        """The bundle as a JSON object. Defaults are written out, so that a run keeps those it was started with."""
        made: dict[str, Plain] = {
            "workflow": _dump(self.workflow),
            "agents": {name: _dump(agent) for name, agent in sorted(self.agents.items())},
            "providers": {name: _dump(provider) for name, provider in sorted(self.providers.items())},
        }
        if self.workflows:  # a bundle without any is as it always was, and so is its hash
            made["workflows"] = {name: dict(plain) for name, plain in sorted(self.workflows.items())}
        if self.quick:  # as above
            made["quick"] = list(self.quick)
        return made

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> PinnedWorkflow:
        """The bundle that `to_plain` wrote.

        Raises:
            ManifestError: it is not such an object, or one of a newer release with fields this one does not know.
        """
        try:
            return cls(
                workflow=AiWorkflow.model_validate(data["workflow"]),
                agents={name: AiAgent.model_validate(item) for name, item in data["agents"].items()},
                providers={name: LlmProvider.model_validate(item) for name, item in data["providers"].items()},
                workflows={name: _sub(item) for name, item in data.get("workflows", {}).items()},
                quick=tuple(str(name) for name in data.get("quick", ())),
            )
        except (KeyError, AttributeError, TypeError, ValidationError) as error:
            raise ManifestError(
                f"This is no pinned workflow that this release can read: {error}. "
                "Run it with the release that stored it, or a newer one.",
                field="bundle",
            ) from error


def _dump(part: AiWorkflow | AiAgent | LlmProvider) -> dict[str, Plain]:
    return part.model_dump(by_alias=True)


def _sub(item: Mapping[str, Any]) -> dict[str, Plain]:
    if TREE not in item:
        AiWorkflow.model_validate(item["workflow"])
    return dict(item)


def _calls(plain: Mapping[str, Plain]) -> tuple[str, ...]:
    return () if TREE in plain else referred(plain["workflow"]["spec"])
