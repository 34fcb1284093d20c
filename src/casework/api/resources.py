"""Routes under /v1/resources: manifests applied to the installation, as numbered generations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from casework.api import resources_applying, resources_shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import CursorText, Limit
from casework.api.render import when
from casework.api.requests import Short
from casework.api.resources_parsing import check_role, parsed
from casework.api.resources_status import status_of
from casework.api.services import ServicesDep
from casework.errors import InputError, NotFoundError
from casework.graph.kinds import ALL_KINDS
from casework.graph.words import nearest
from casework.store import resources
from casework.store.resources import ResourceRow
from casework.values import Plain

router = APIRouter(prefix="/v1/resources", tags=["resources"], route_class=ExactRoute)

KindPath = Annotated[Short, Path(description="As in manifests: AiWorkflow, AiAgent, ...")]
NamePath = Annotated[Short, Path(description="The resource's name.")]


@router.post("", response_model=resources_shapes.ApplyReport)
@needs(Role.OPERATOR)
async def apply_manifests(body: resources_shapes.ApplyManifests, caller: CallerDep, services: ServicesDep) -> Response:
    """Apply manifests, all or none. A WorkflowSession starts a run; other kinds need the role admin.

    Workflows that were sent, and those that refer to what was sent, get a new version where their content changed.
    """
    found = parsed(body.manifests, caller, services.app)
    report = await resources_applying.apply(services, caller, found, dry_run=body.dry_run)
    items: list[Plain] = [
        {
            "kind": row.kind,
            "name": row.name,
            "generation": row.generation,
            "outcome": outcome,
            "run_id": _text(row.run_id),
        }
        for row, outcome in report.applied
    ]
    published: list[Plain] = [{"name": name, "version": version} for name, version in report.published.items()]
    return PlainResponse({"items": items, "published": published, "dry_run": body.dry_run})


@router.get("", response_model=resources_shapes.ResourcePage)
@needs(Role.VIEWER)
async def list_resources(
    caller: CallerDep,
    services: ServicesDep,
    kind: Annotated[Short | None, Query()] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """What was applied and not deleted, by kind and name, page by page."""
    if kind is not None and kind not in ALL_KINDS:
        raise InputError(_no_kind(kind), field="kind")
    async with services.db.transaction() as conn:
        rows, more = await resources.page(conn, caller.tenant, kind, _after(cursor), limit)
    following = f"{rows[-1].kind}/{rows[-1].name}" if more else None
    return PlainResponse({"items": [_line(row) for row in rows], "next_cursor": following})


@router.get("/{kind}/{name}", response_model=resources_shapes.ResourceDetail)
@needs(Role.VIEWER)
async def show_resource(kind: KindPath, name: NamePath, caller: CallerDep, services: ServicesDep) -> Response:
    """A resource with its manifest, its conditions as they are now, and its newest generations."""
    _check_kind(kind)
    async with services.db.transaction() as conn:
        known = await resources.generations(conn, caller.tenant, kind, name)
        if not known or known[0].manifest is None:
            raise NotFoundError(f"There is no {kind} {name!r} that was applied. `casework get {kind}` lists them.")
        status = await status_of(conn, services, caller.tenant, known[0])
    body = {**_line(known[0]), "manifest": known[0].manifest, "status": status}
    return PlainResponse({**body, "generations": [_generation(row) for row in known]})


@router.delete("/{kind}/{name}", response_model=resources_shapes.Deleted)
@needs(Role.OPERATOR)
async def delete_resource(kind: KindPath, name: NamePath, caller: CallerDep, services: ServicesDep) -> Response:
    """Delete a resource. Runs that are pinned to a version of a workflow keep it; new ones cannot be started."""
    _check_kind(kind)
    check_role(kind, caller)
    hidden = await resources_applying.delete(services, caller, kind, name)
    return PlainResponse({"kind": kind, "name": name, "hidden_version": hidden})


def _check_kind(kind: str) -> None:
    if kind not in ALL_KINDS:
        raise NotFoundError(_no_kind(kind))


def _no_kind(kind: str) -> str:
    return f"There is no kind {kind!r}; there are {', '.join(ALL_KINDS)}.{nearest(kind, ALL_KINDS)}"


def _after(cursor: str | None) -> tuple[str, str]:
    kind, sign, name = (cursor or "/").partition("/")
    if not sign or (kind and kind not in ALL_KINDS):
        raise InputError(f"{cursor!r:.100} is no cursor. Pass the next_cursor of the page before.", field="cursor")
    return kind, name


def _line(row: ResourceRow) -> dict[str, Plain]:
    return {
        "kind": row.kind,
        "name": row.name,
        "generation": row.generation,
        "applied_by": row.applied_by,
        "applied_at": when(row.created_at),
        "run_id": _text(row.run_id),
    }


def _generation(row: ResourceRow) -> dict[str, Plain]:
    shown = {key: item for key, item in _line(row).items() if key in ("generation", "applied_by", "applied_at")}
    return {**shown, "deleted": row.manifest is None}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
