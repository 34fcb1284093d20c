"""Routes under /v1/reviews. Reading them changes nothing; only a POST decides."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from casework.api import deciding, render, requests, shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import CursorText, Limit, cursor_of, next_of
from casework.api.services import ServicesDep
from casework.store import reviews

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], route_class=ExactRoute)

ReviewId = Annotated[UUID, Path(description="The review's id.")]


@router.get("", response_model=shapes.ReviewPage)
@needs(Role.VIEWER)
async def list_reviews(
    caller: CallerDep, services: ServicesDep, limit: Limit = 50, cursor: CursorText = None
) -> Response:
    """Reviews that wait for a person, the oldest first."""
    async with services.db.transaction() as conn:
        page = await reviews.waiting(conn, caller.tenant, after=cursor_of(cursor), limit=limit)
    items = [{**render.review(row), "workflow": row.workflow_name, "user": row.user_id} for row in page.rows]
    return PlainResponse({"items": items, "next_cursor": next_of(page)})


@router.get("/{review_id}", response_model=shapes.ReviewDetail)
@needs(Role.VIEWER)
async def show_review(review_id: ReviewId, caller: CallerDep, services: ServicesDep) -> Response:
    """A review with its run's state and every decision it was given."""
    now = await deciding.standing(services, caller.tenant, review_id)
    async with services.db.transaction() as conn:
        given = await reviews.decisions(conn, caller.tenant, now.run.run_id)
    return PlainResponse(
        {
            **render.review(now.review),
            "workflow": now.run.workflow_name,
            "run_status": now.run.status,
            "given": render.given(review_id, given),
        }
    )


@router.post(
    "/{review_id}/decisions",
    status_code=202,
    response_model=shapes.Receipt,
    responses={200: {"model": shapes.Receipt, "description": "Accepted by the run."}},
)
@needs(Role.REVIEWER)
async def decide(
    *,
    review_id: ReviewId,
    body: requests.Decide,
    caller: CallerDep,
    services: ServicesDep,
    wait: Annotated[Literal["accepted"] | None, Query(description="Wait for the run's word.")] = None,
    timeout: Annotated[float, Query(gt=0, le=60, description="Most seconds to wait.")] = 10,  # noqa: ASYNC109  # the caller's
) -> Response:
    """Answer a review.

    202: received by the run, which accepts or ignores it. With `wait=accepted`: 200 accepted, 409 rejected with the
    reason, 202 when the time is over. 409 at once, and nothing sent, where the review is not the current one.
    """
    wait_s = timeout if wait else None
    state, decision, run_id = await deciding.decide(services, caller, review_id, body, wait_s)
    receipt = {
        "state": state,
        "run_id": str(run_id),
        "review_id": decision.review_id,
        "decision_id": decision.decision_id,
        "command": decision.command,
    }
    headers = {"Location": f"/v1/reviews/{review_id}"}
    return PlainResponse(receipt, 200 if state == "accepted" else 202, headers=headers)
