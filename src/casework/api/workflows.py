"""Routes under /v1/workflows: what runs can be started of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from casework.api import shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.requests import Short
from casework.api.services import Services, ServicesDep
from casework.errors import NotFoundError
from casework.store import workflows
from casework.trees.bundle import Pinned, PinnedTree, pinned_from_plain

router = APIRouter(prefix="/v1/workflows", tags=["workflows"], route_class=ExactRoute)


@router.get("", response_model=shapes.WorkflowList)
@needs(Role.VIEWER)
async def list_workflows(caller: CallerDep, services: ServicesDep) -> Response:
    """Every workflow with its newest version."""
    async with services.db.transaction() as conn:
        known = await workflows.names(conn, caller.tenant)
    return PlainResponse({"items": [{"name": name, "version": version} for name, version in sorted(known.items())]})


@router.get("/{name}", response_model=shapes.WorkflowDetail)
@needs(Role.VIEWER)
async def show_workflow(name: Annotated[Short, Path()], caller: CallerDep, services: ServicesDep) -> Response:
    """A workflow's newest version: the schema of its input, its nodes (a free tree has none), people's decisions."""
    version, pinned = await _newest(services, caller.tenant, name)
    nodes = [
        {"id": node.id, "type": node.type, "decisions": [one.name for one in node.decisions or ()]}
        for node in (() if isinstance(pinned, PinnedTree) else pinned.workflow.spec.nodes)
    ]
    return PlainResponse({"name": name, "version": version, "input_schema": pinned.input_schema, "nodes": nodes})


@router.get("/{name}/manifest", response_model=shapes.WorkflowManifest)
@needs(Role.VIEWER)
async def show_manifest(name: Annotated[Short, Path()], caller: CallerDep, services: ServicesDep) -> Response:
    """The manifest of a workflow's newest version, as it was admitted; null for a free tree, which is code."""
    version, pinned = await _newest(services, caller.tenant, name)
    manifest = None if isinstance(pinned, PinnedTree) else pinned.workflow.model_dump(by_alias=True)
    return PlainResponse({"name": name, "version": version, "manifest": manifest})


async def _newest(services: Services, tenant: str, name: str) -> tuple[int, Pinned]:
    async with services.db.transaction() as conn:
        found = await workflows.latest(conn, tenant, name)
        known = await workflows.names(conn, tenant)
    if found is None:
        raise NotFoundError(f"There is no workflow {name!r}. There are: {', '.join(known) or 'none yet'}.")
    version, bundle = found
    return version, pinned_from_plain(bundle)
