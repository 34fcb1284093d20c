"""Which resources are looked at together: what is applied, over what was applied before, over the application's own.

Of all that is there only what a request touches is admitted with it: the workflows that refer to what it brings, and
what those refer to. So a workflow that came to harm by itself, as by a tool that the application lost, keeps nobody
from applying something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from casework.app import App
from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.kinds import ALL_KINDS
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider, Manifest, Resource
from casework.graph.references import referred
from casework.store.resources import ResourceRow
from casework.trees.bundle import PinnedTree


def read_back(row: ResourceRow) -> Resource | None:
    """The resource of a row; None where this release cannot read it, as one of a newer release."""
    try:
        return ALL_KINDS[row.kind].model_validate(row.manifest)
    except (KeyError, ValidationError):
        return None


@dataclass
class Together:
    """Workflows, agents and providers by name; the later added hides the earlier of its name."""

    app: App
    workflows: dict[str, AiWorkflow] = field(default_factory=dict)
    agents: dict[str, AiAgent] = field(default_factory=dict)
    providers: dict[str, LlmProvider] = field(default_factory=dict)

    @classmethod
    def of(cls, app: App, rows: Iterable[ResourceRow], incoming: Iterable[Resource] = ()) -> Together:
        """All that counts for one request."""
        made = cls(app)
        for pinned in app.bundles().values():
            made.add(*pinned.agents.values(), *pinned.providers.values())
            if isinstance(pinned, PinnedWorkflow):
                made.add(pinned.workflow)
        made.add(*(one for row in rows if (one := read_back(row)) is not None), *incoming)
        return made

    def add(self, *resources: Resource) -> None:
        """Take resources in; kinds that nothing refers to are passed over."""
        for one in resources:
            if isinstance(one, AiWorkflow):
                self.workflows[one.name] = one
            elif isinstance(one, AiAgent):
                self.agents[one.name] = one
            elif isinstance(one, LlmProvider):
                self.providers[one.name] = one

    def touched(self, incoming: Sequence[Resource]) -> list[str]:
        """The workflows that are in `incoming` or refer to something in it, by name."""
        names = {(type(one).__name__, one.name) for one in incoming}
        return sorted(name for name in self.workflows if names & set(self._needs(name)))

    def users_of(self, kind: str, name: str) -> list[str]:
        """The other workflows that refer to a resource, directly or through others."""
        return sorted(
            user
            for user in self.workflows
            if (kind, name) in self._needs(user) and ("AiWorkflow", user) != (kind, name)
        )

    def admitted(self, names: Iterable[str], besides: Sequence[Resource] = ()) -> Mapping[str, PinnedWorkflow]:
        """The named workflows pinned, admitted with what they need and with `besides`.

        Raises:
            ManifestError: something does not hold; every problem is listed.
        """
        wanted = list(names)
        needed = {need for name in wanted for need in self._needs(name)}
        needed |= {(type(one).__name__, one.name) for one in besides}
        needed |= {("LlmProvider", one.spec.provider) for one in besides if isinstance(one, AiAgent)}
        found = [one for one in self._all() if (type(one).__name__, one.name) in needed]
        tools = {schema.name: schema.parameters for schema in self.app.toolbox.schemas()}
        trees = {name: one.to_plain() for name, one in self.app.bundles().items() if isinstance(one, PinnedTree)}
        pinned = admit(found, tools, scripts=self.app.scripts, trees=trees, quick=self.app.toolbox.quick)
        return {one.name: one for one in pinned if one.name in wanted}

    def holds(self, name: str) -> bool:
        """Whether a workflow can be admitted as things are."""
        try:
            self.admitted([name])
        except ManifestError:
            return False
        return True

    def _all(self) -> Iterator[Manifest]:
        yield from self.workflows.values()
        yield from self.agents.values()
        yield from self.providers.values()

    def _needs(self, name: str) -> Iterator[tuple[str, str]]:
        """The workflow itself and all that it refers to, as kind and name."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            yield "AiWorkflow", one
            if (workflow := self.workflows.get(one)) is None:
                continue
            waiting += referred(workflow.spec)
            for agent in {each.agent_ref for each in workflow.spec.vertices if each.agent_ref}:
                yield "AiAgent", agent
                if agent in self.agents:
                    yield "LlmProvider", self.agents[agent].spec.provider
