"""An application: the tools, manifests and scripts that worker, API and command line load as one object."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool
from casework.errors import InputError
from casework.graph.bundle import PinnedWorkflow
from casework.policy import PolicyLimits, normalise_purpose, parse_policy


class App:
    """What a project gives to Casework."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        manifests: Iterable[Any] = (),
        providers: Iterable[Any] = (),
        modules: Iterable[Any] = (),
        scripts: Mapping[str, Any] | None = None,
        policy: Path | None = None,
        rehearsal: Any = None,
    ) -> None:
        self.toolbox = Toolbox(tools)
        self.manifests = tuple(manifests)
        self.providers = tuple(providers)
        self.modules = tuple(modules)
        self.scripts = dict(scripts or {})
        self.policy = policy
        self.rehearsal = rehearsal

    def workflows(self) -> dict[str, PinnedWorkflow]:
        """The admitted workflows by name."""
        return self._admitted

    @cached_property
    def _admitted(self) -> dict[str, PinnedWorkflow]:
        from ruamel.yaml import YAML

        from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider

        kinds: dict[str, Any] = {"AiWorkflow": AiWorkflow, "AiAgent": AiAgent, "LlmProvider": LlmProvider}
        found: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
        for path in self.manifests:
            for plain in YAML(typ="safe").load_all(path.read_text()):
                made = kinds[plain["kind"]].model_validate(plain)
                found[plain["kind"]][made.name] = made
        return {
            name: PinnedWorkflow(made, found["AiAgent"], found["LlmProvider"])
            for name, made in found["AiWorkflow"].items()
        }

    def fixture_limits(self, purpose: str) -> PolicyLimits | None:
        """The shipped limits of a purpose, for the setting `fixture`."""
        return self._fixture_policy.get(normalise_purpose(purpose))

    @cached_property
    def _fixture_policy(self) -> dict[str, PolicyLimits]:
        if self.policy is None:
            return {}
        return {row.purpose: row for row in parse_policy(self.policy.read_text(), name=self.policy.name).limits}


def load_app(reference: str | None) -> App:
    """The App that `package.module:attribute` names."""
    if reference is None or ":" not in reference:
        raise InputError(f"{reference!r} names no App. Pass --app package.module:name.", field="app")
    module, _, attribute = reference.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, App):
        raise InputError(f"{reference} is no casework.App.", field="app")
    return found
