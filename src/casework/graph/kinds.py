"""The kinds that are applied to an installation, beside those that an application is made of, and their registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from casework.graph.fields import Address, Count
from casework.graph.manifests import KINDS, Identifier, KeyRef, Name, Part, Resource

_Word = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]


class McpServerSpec(Part):
    """A server of tools. `stdio` is a program that a worker starts, `http` is one that is there, by its address."""

    type: Literal["stdio", "http"]
    command: _Word | None = None
    args: Annotated[tuple[_Word, ...], Field(max_length=100)] = ()
    env: dict[_Variable, KeyRef] | None = None
    url: Address | None = None
    key_ref: KeyRef | None = None
    tools: tuple[Identifier, ...] | None = None

    @model_validator(mode="after")
    def _fields_of_its_type(self) -> McpServerSpec:
        needed, other = ("command", ("url", "keyRef")) if self.type == "stdio" else ("url", ("command", "args", "env"))
        if not getattr(self, needed):
            raise ValueError(f"a server of type {self.type} needs `{needed}`")
        given = self.model_dump(by_alias=True)
        for name in other:
            if given.get(name):
                raise ValueError(f"`{name}` is not for a server of type {self.type}. Remove it")
        return self


class McpServer(Resource):
    """A server whose tools agents may use. It can be applied and listed; agents do not use it yet."""

    kind: Literal["McpServer"] = "McpServer"
    spec: McpServerSpec


class WorkflowSessionSpec(Part):
    """A run to be started: of which workflow, of what input, with at most how many visits (else the workflow's)."""

    workflow_ref: Name
    input: dict[str, Any] = Field(default_factory=dict)
    max_loops: Annotated[Count, Field(ge=1, le=100_000)] | None = None


class WorkflowSession(Resource):
    """One run of a workflow. Applying it starts the run; its spec does not change."""

    kind: Literal["WorkflowSession"] = "WorkflowSession"
    spec: WorkflowSessionSpec


ALL_KINDS: Mapping[str, type[Resource]] = {**KINDS, "McpServer": McpServer, "WorkflowSession": WorkflowSession}
"""Every kind that can be applied."""
