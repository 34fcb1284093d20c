"""The shapes of requests and answers under /v1/resources."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from casework.api.requests import Body
from casework.api.shapes import Shape

MOST = 200
"""Most manifests of one request."""


class ApplyManifests(Body):
    """Apply manifests, all of them or none."""

    manifests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST)]
    dry_run: bool = Field(False, description="Check all, say what would come of it, and write nothing.")


class Applied(Shape):
    """What became of one manifest. `run_id`: the run of a WorkflowSession."""

    kind: str
    name: str
    generation: int
    outcome: Literal["created", "configured", "unchanged"]
    run_id: UUID | None


class Published(Shape):
    """A workflow whose newest version this is now: it was applied, or what it refers to was."""

    name: str
    version: int


class ApplyReport(Shape):
    """Each manifest in the order sent, and the workflows that got a version."""

    items: list[Applied]
    published: list[Published]
    dry_run: bool


class ResourceLine(Shape):
    """A resource in a list."""

    kind: str
    name: str
    generation: int
    applied_by: str
    applied_at: str
    run_id: UUID | None


class ResourcePage(Shape):
    """Resources by kind and name; `next_cursor` is null on the last page."""

    items: list[ResourceLine]
    next_cursor: str | None


class Generation(Shape):
    """One applied version of a resource; `deleted`: it says that the resource is gone."""

    generation: int
    applied_by: str
    applied_at: str
    deleted: bool


class ResourceDetail(ResourceLine):
    """A resource with its manifest, its status as a manifest has it, and its newest generations."""

    manifest: dict[str, Any]
    status: dict[str, Any]
    generations: list[Generation]


class Deleted(Shape):
    """What was deleted. `hidden_version`: of a workflow, the version up to which no new run gets it."""

    kind: str
    name: str
    hidden_version: int | None
