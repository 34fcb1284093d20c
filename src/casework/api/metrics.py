"""Routes under /v1/metrics: figures out of roll-up rows and partial indexes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.responses import Response

from casework.api import render, shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import TextFilter
from casework.api.services import ServicesDep
from casework.store import metrics
from casework.values import instant

router = APIRouter(prefix="/v1/metrics", tags=["metrics"], route_class=ExactRoute)

WINDOW = timedelta(days=1)
"""How far back figures go where the caller does not say."""

Since = Annotated[
    AwareDatetime | None, Query(description="An instant with its time zone; figures from there on. Default: a day ago.")
]


@router.get("/workflows", response_model=shapes.WorkflowMetrics)
@needs(Role.VIEWER)
async def workflow_metrics(
    caller: CallerDep, services: ServicesDep, since: Since = None, workflow: TextFilter = None
) -> Response:
    """Runs by state and outcome, tokens, cost and times, by workflow."""
    begin = since or datetime.now(UTC) - WINDOW
    async with services.db.transaction() as conn:
        rows = await metrics.workflows(conn, caller.tenant, begin, workflow)
    return PlainResponse({"since": instant(begin), "items": [render.metrics(row) for row in rows]})


@router.get("/retries", response_model=shapes.RetryMetrics)
@needs(Role.VIEWER)
async def retry_metrics(caller: CallerDep, services: ServicesDep, since: Since = None) -> Response:
    """Attempts that failed, were lost or came late, by tool and model."""
    begin = since or datetime.now(UTC) - WINDOW
    async with services.db.transaction() as conn:
        rows = await metrics.retries(conn, caller.tenant, begin)
    return PlainResponse({"since": instant(begin), "items": [render.metrics(row) for row in rows]})
