"""Routes under /v1/metrics: figures out of roll-up rows and partial indexes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from casework.api import metric_shapes, render
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import TextFilter
from casework.api.requests import Instant
from casework.api.services import ServicesDep
from casework.errors import InputError
from casework.store import metrics
from casework.values import instant

router = APIRouter(prefix="/v1/metrics", tags=["metrics"], route_class=ExactRoute)

WINDOW = timedelta(days=1)
"""How far back figures go where the caller does not say."""
LONGEST: dict[metrics.By, timedelta] = {"hour": timedelta(days=31), "day": timedelta(days=366)}
"""How far back a series may go, so that an answer stays readable."""


Since = Annotated[
    Instant | None,
    Query(description="An instant with its time zone; figures from there on. Default: a day ago."),
]
Steps = Annotated[
    metrics.By | None,
    Query(description="One item for each `hour` or `day` (UTC) of acceptance, back to 31 or 366 days. Default: none."),
]


@router.get("/workflows", response_model=metric_shapes.WorkflowMetrics)
@needs(Role.VIEWER)
async def workflow_metrics(
    caller: CallerDep, services: ServicesDep, since: Since = None, workflow: TextFilter = None, by: Steps = None
) -> Response:
    """Runs by state and outcome, reviews, attempts, tokens, cost and times, by workflow."""
    now = datetime.now(UTC)
    begin = metrics.hour_of(since or now - WINDOW)
    _check_length(by, now - begin)
    async with services.db.transaction() as conn:
        rows = await metrics.workflows(conn, caller.tenant, begin, workflow, by)
    return PlainResponse({"since": instant(begin), "items": [render.metrics(row) for row in rows]})


def _check_length(by: metrics.By | None, window: timedelta) -> None:
    """That a series is not longer than anyone reads.

    Raises:
        InputError: it is.
    """
    if by is not None and window > LONGEST[by] + timedelta(hours=1):
        raise InputError(
            f"since is {window.days} days ago; by {by} figures go back {LONGEST[by].days}. "
            "Send a later instant, or another step.",
            field="since",
        )


@router.get("/retries", response_model=metric_shapes.RetryMetrics)
@needs(Role.VIEWER)
async def retry_metrics(caller: CallerDep, services: ServicesDep, since: Since = None) -> Response:
    """Attempts that failed, were lost or came late, by tool and model."""
    begin = since or datetime.now(UTC) - WINDOW
    async with services.db.transaction() as conn:
        rows = await metrics.retries(conn, caller.tenant, begin)
    return PlainResponse({"since": instant(begin), "items": [render.metrics(row) for row in rows]})
