"""`casework validate`: whether manifests hold together, without a server.

With an application at hand its tools, scripts, agents and workflows are known, and everything is checked. Without one,
what a manifest only names (a tool, an agent of elsewhere) is taken to be there, and is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.app import App
    from casework.graph.manifests import Manifest, Resource


@dataclass(frozen=True)
class Checked:
    """How many resources hold, the names that were taken on trust, and what holds but may be meant otherwise."""

    count: int
    trusted: tuple[str, ...]
    hints: tuple[str, ...]


def check(found: Sequence[Resource], app: App | None) -> Checked:
    """Admit the manifests as the server would.

    Raises:
        ManifestError: something does not hold; every problem with file, line and path.
    """
    from casework.graph.admission import admit
    from casework.graph.input_uses import hints
    from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider

    definitions: list[Manifest] = [one for one in found if isinstance(one, AiWorkflow | AiAgent | LlmProvider)]
    told = tuple(hint for one in definitions if isinstance(one, AiWorkflow) for hint in hints(one))
    if app is not None:
        from casework.trees.bundle import PinnedTree

        own = [*_own(app, definitions), *definitions]
        tools = {schema.name: schema.parameters for schema in app.toolbox.schemas()}
        trees = {name: one.to_plain() for name, one in app.bundles().items() if isinstance(one, PinnedTree)}
        admit(own, tools, scripts=app.scripts, trees=trees)
        return Checked(len(found), (), told)
    made = _Trust(definitions)
    admit([*definitions, *made.stand_ins()], made.tools, trees=made.workflows)
    return Checked(len(found), made.names(), told)


def _own(app: App, definitions: Sequence[Manifest]) -> list[Manifest]:
    """What the application has, but for what the files bring under the same names."""
    from casework.graph.bundle import PinnedWorkflow

    given = {(type(one).__name__, one.name) for one in definitions}
    own: dict[tuple[str, str], Manifest] = {}
    for pinned in app.bundles().values():
        workflow = [pinned.workflow] if isinstance(pinned, PinnedWorkflow) else []
        parts: list[Manifest] = [*workflow, *pinned.agents.values(), *pinned.providers.values()]
        own |= {(type(one).__name__, one.name): one for one in parts}
    return [one for key, one in own.items() if key not in given]


class _Trust:
    """What manifests name and do not hold."""

    def __init__(self, definitions: Sequence[Manifest]) -> None:
        from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider

        workflows = {one.name: one for one in definitions if isinstance(one, AiWorkflow)}
        agents = {one.name: one for one in definitions if isinstance(one, AiAgent)}
        providers = {one.name for one in definitions if isinstance(one, LlmProvider)}
        vertices = [each for one in workflows.values() for each in one.spec.vertices]
        self.tools = {each.tool for each in vertices if each.tool} | {t for a in agents.values() for t in a.spec.tools}
        self._agents = {each.agent_ref for each in vertices if each.agent_ref} - agents.keys()
        self._providers = {one.spec.provider for one in agents.values()} - providers
        unknown = {each.workflow_ref for each in vertices if each.workflow_ref} - workflows.keys()
        # A free tree's bundle stands for a workflow of elsewhere: its input has no schema, so any arguments will do.
        self.workflows: dict[str, Any] = {name: {"tree": {"name": name}} for name in unknown}

    def stand_ins(self) -> list[Manifest]:
        """An agent or a provider for each name."""
        from casework.graph.manifests import AiAgent, LlmProvider

        agent, provider = {"provider": "elsewhere", "model": "any"}, {"type": "openai", "defaultModel": "any"}
        needed = self._providers | ({"elsewhere"} if self._agents else set())
        return [
            *(AiAgent.model_validate({"metadata": {"name": name}, "spec": agent}) for name in sorted(self._agents)),
            *(LlmProvider.model_validate({"metadata": {"name": name}, "spec": provider}) for name in sorted(needed)),
        ]

    def names(self) -> tuple[str, ...]:
        """All of them, for a reader."""
        kinds = (
            ("tool", self.tools),
            ("agent", self._agents),
            ("provider", self._providers),
            ("workflow", self.workflows),
        )
        return tuple(f"{kind} {name}" for kind, names in kinds for name in sorted(names))
