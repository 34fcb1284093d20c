"""Route /v1/steps: steps of all runs that are in flight, tried again, or failed for good."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from casework.api import doing, render, step_shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import CursorText, Limit, TextFilter, cursor_of, next_of
from casework.api.requests import Instant
from casework.api.services import Services, ServicesDep
from casework.store import steps
from casework.store.steps import StepLine, Wanted

router = APIRouter(prefix="/v1/steps", tags=["steps"], route_class=ExactRoute)

WINDOW = timedelta(days=1)
"""How far back failures go where the caller does not say."""
ASKED = 20
"""Most runs of one page that the engine is asked about; the time of the next attempt is unknown for the others."""


@router.get("", response_model=step_shapes.StepLines)
@needs(Role.VIEWER)
async def list_steps(
    *,
    caller: CallerDep,
    services: ServicesDep,
    state: Annotated[
        Literal["retrying", "started", "failed"],
        Query(description="retrying: an attempt did not succeed and another follows; started: in flight; failed."),
    ],
    kind: Annotated[Literal["tool", "model"] | None, Query()] = None,
    name: Annotated[TextFilter, Query(description="Of a tool or a model.")] = None,
    workflow: TextFilter = None,
    run_id: Annotated[UUID | None, Query()] = None,
    since: Annotated[
        Instant | None, Query(description="Failed since an instant with its time zone. Default: a day ago.")
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Steps in flight or tried again, the longest first; or steps that failed for good, the newest first."""
    begin = since or datetime.now(UTC) - WINDOW
    wanted = Wanted(caller.tenant, state, begin, kind, name, workflow, run_id)
    async with services.db.transaction() as conn:
        page = await steps.page(conn, wanted, cursor_of(cursor), limit)
    due = await _due(services, page.rows) if state == "retrying" else {}
    items = [render.step_line(row, doing.next_attempt(due.get(row.run_id, {}), row.path)) for row in page.rows]
    return PlainResponse({"items": items, "next_cursor": next_of(page)})


async def _due(services: Services, rows: Sequence[StepLine]) -> dict[UUID, dict[str, datetime]]:
    """By run, when its steps are tried again."""
    asked = list(dict.fromkeys(row.run_id for row in rows))[:ASKED]
    answers = await asyncio.gather(*(services.runs.in_hand(str(run_id)) for run_id in asked))
    return {run_id: doing.next_attempts(held) for run_id, held in zip(asked, answers, strict=True) if held}
