"""What a run of a free tree is pinned to: name and version of its code, and all whom it may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from casework.errors import ManifestError
from casework.graph.bundle import TREE, PinnedWorkflow
from casework.graph.manifests import AiAgent, LlmProvider
from casework.trees.definition import MAX_EVENTS
from casework.values import Plain, content_hash


@dataclass(frozen=True)
class PinnedTree:
    """A version of a free tree, its agents and their providers by name. The code itself is the worker's."""

    name: str
    version: int
    agents: Mapping[str, AiAgent] = field(default_factory=dict)
    providers: Mapping[str, LlmProvider] = field(default_factory=dict)
    input_schema: Mapping[str, Any] | None = None
    max_events: int = MAX_EVENTS
    policy_adoption: Literal["pinned", "next_turn"] = "pinned"
    """A tree has one turn."""

    def hash(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits: equal content, equal hash."""
        return content_hash(self.to_plain())

    def to_plain(self) -> dict[str, Plain]:
        """The bundle as a JSON object."""
        tree: dict[str, Any] = {"name": self.name, "version": self.version, "maxEvents": self.max_events}
        if self.input_schema is not None:
            tree["input"] = dict(self.input_schema)
        return {
            TREE: tree,
            "agents": {name: made.model_dump(by_alias=True) for name, made in sorted(self.agents.items())},
            "providers": {name: made.model_dump(by_alias=True) for name, made in sorted(self.providers.items())},
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> PinnedTree:
        """The bundle that `to_plain` wrote.

        Raises:
            ManifestError: it is not such an object, or one of a newer release with fields this one does not know.
        """
        try:
            tree = data[TREE]
            return cls(
                name=tree["name"],
                version=tree["version"],
                agents={name: AiAgent.model_validate(item) for name, item in data["agents"].items()},
                providers={name: LlmProvider.model_validate(item) for name, item in data["providers"].items()},
                input_schema=tree.get("input"),
                max_events=tree["maxEvents"],
            )
        except (KeyError, AttributeError, TypeError, ValidationError) as error:
            raise ManifestError(
                f"This is no pinned free tree that this release can read: {error}. "
                "Run it with the release that stored it, or a newer one.",
                field="bundle",
            ) from error


Pinned = PinnedWorkflow | PinnedTree
"""What a run can be started of."""


def pinned_from_plain(data: Mapping[str, Any]) -> Pinned:
    """The bundle that either's `to_plain` wrote.

    Raises:
        ManifestError: it is neither.
    """
    return PinnedTree.from_plain(data) if TREE in data else PinnedWorkflow.from_plain(data)
