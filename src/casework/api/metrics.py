"""Routes under /v1/metrics: numbers out of roll-up rows."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from casework.api import shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.services import ServicesDep
from casework.store import metrics

router = APIRouter(prefix="/v1/metrics", tags=["metrics"], route_class=ExactRoute)


@router.get("/workflows", response_model=shapes.Metrics)
@needs(Role.VIEWER)
async def workflow_metrics(caller: CallerDep, services: ServicesDep) -> Response:
    """Runs by state, tokens, cost and times, by workflow."""
    async with services.db.transaction() as conn:
        rows = await metrics.workflows(conn, caller.tenant)
    return PlainResponse({"items": rows})


@router.get("/retries", response_model=shapes.Metrics)
@needs(Role.VIEWER)
async def retry_metrics(caller: CallerDep, services: ServicesDep) -> Response:
    """Steps tried again, lost and late, by tool and model."""
    async with services.db.transaction() as conn:
        rows = await metrics.retries(conn, caller.tenant)
    return PlainResponse({"items": rows})
