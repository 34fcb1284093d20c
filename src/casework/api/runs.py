"""Routes under /v1/runs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from casework.api import detail, forking, render, requests, shapes, signalling, step_shapes, submission
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import CursorText, Limit, TextFilter, cursor_of, next_of
from casework.api.services import ServicesDep
from casework.durable.contracts import CancelRequest
from casework.errors import StateError
from casework.store import messages, runs, steps

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=ExactRoute)

RunId = Annotated[UUID, Path(description="The run's id.")]


@router.post("", status_code=202, response_model=shapes.Run, responses={200: {"model": shapes.Run}})
@needs(Role.OPERATOR)
async def start_run(
    body: requests.StartRun,
    caller: CallerDep,
    services: ServicesDep,
    idempotency_key: Annotated[str | None, Header(description="The same key and body is the same run.")] = None,
) -> Response:
    """Start a run. 202 for a new one; 200 for the run that the same key and body started before."""
    row, created = await submission.submit(services, caller, body, idempotency_key)
    return PlainResponse(render.run(row), 202 if created else 200, headers={"Location": f"/v1/runs/{row.run_id}"})


@router.get("", response_model=shapes.RunPage)
@needs(Role.VIEWER)
async def list_runs(
    *,
    caller: CallerDep,
    services: ServicesDep,
    user: TextFilter = None,
    status: Annotated[shapes.Status | None, Query()] = None,
    workflow: TextFilter = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Runs, newest first, page by page."""
    async with services.db.transaction() as conn:
        page = await runs.list_page(
            conn, caller.tenant, user=user, status=status, workflow=workflow, after=cursor_of(cursor), limit=limit
        )
    return PlainResponse({"items": [render.run(row) for row in page.rows], "next_cursor": next_of(page)})


@router.get("/{run_id}", response_model=shapes.RunDetail)
@needs(Role.VIEWER)
async def show_run(run_id: RunId, caller: CallerDep, services: ServicesDep) -> Response:
    """State, evidence, every attempt, policy beside the model's word, and the review, while the run goes on."""
    return PlainResponse(await detail.of(services, caller.tenant, run_id))


@router.get("/{run_id}/steps", response_model=step_shapes.StepPage)
@needs(Role.VIEWER)
async def list_steps(
    run_id: RunId, caller: CallerDep, services: ServicesDep, limit: Limit = 50, cursor: CursorText = None
) -> Response:
    """All steps of a run with their attempts, in the order of their starts, page by page."""
    async with services.db.transaction() as conn:
        await detail.found(conn, caller.tenant, run_id)
        page = await steps.page_of_run(conn, caller.tenant, run_id, cursor_of(cursor), limit)
        attempts = await steps.attempts_of(conn, caller.tenant, [row.step_id for row in page.rows])
    return PlainResponse({"items": render.steps(page.rows, attempts), "next_cursor": next_of(page)})


@router.get("/{run_id}/events", response_model=shapes.EventPage)
@needs(Role.VIEWER)
async def list_events(
    run_id: RunId,
    caller: CallerDep,
    services: ServicesDep,
    after: Annotated[int, Query(ge=0, le=2**62, description="Events with a higher seq.")] = 0,
    limit: Limit = 200,
) -> Response:
    """A run's events in order. Ask again with `after` the last `seq`: nothing is missed and nothing comes twice."""
    async with services.db.transaction() as conn:
        await detail.found(conn, caller.tenant, run_id)
        rows = await runs.events(conn, caller.tenant, run_id, after, limit)
    return PlainResponse({"items": [render.event(row) for row in rows]})


@router.get("/{run_id}/messages", response_model=shapes.MessagePage)
@needs(Role.VIEWER)
async def list_messages(
    run_id: RunId,
    caller: CallerDep,
    services: ServicesDep,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Messages with a higher position.")] = 0,
    limit: Limit = 200,
) -> Response:
    """A run's transcript in order."""
    async with services.db.transaction() as conn:
        await detail.found(conn, caller.tenant, run_id)
        rows = await messages.page(conn, caller.tenant, run_id, after, limit)
    return PlainResponse({"items": [render.message(row) for row in rows]})


@router.post(
    "/{run_id}/fork", status_code=202, response_model=shapes.ForkedRun, responses={200: {"model": shapes.ForkedRun}}
)
@needs(Role.OPERATOR)
async def fork_run(
    run_id: RunId,
    caller: CallerDep,
    services: ServicesDep,
    body: requests.ForkRun | None = None,
    idempotency_key: Annotated[str | None, Header(description="The same key and body is the same fork.")] = None,
) -> Response:
    """Start a new run from a recorded step of this one, with edits. 202: it is new; 200: the same key made it."""
    made = await forking.fork(services, caller, run_id, body or requests.ForkRun(), idempotency_key)
    headers = {"Location": f"/v1/runs/{made.row.run_id}"}
    return PlainResponse(render.forked(made.row, made.fork), 202 if made.created else 200, headers=headers)


@router.post("/{run_id}/cancel", status_code=202, response_model=shapes.CancelReceipt)
@needs(Role.OPERATOR)
async def cancel_run(
    run_id: RunId, caller: CallerDep, services: ServicesDep, body: requests.CancelRun | None = None
) -> Response:
    """Ask a run to stop. 202: the request was received. 409: the run has ended otherwise."""
    async with services.db.transaction() as conn:
        row = await detail.found(conn, caller.tenant, run_id)
    if row.status in {"COMPLETED", "FAILED"}:
        raise StateError(f"Run {run_id} is {row.status} and cannot be cancelled.", details={"run_status": row.status})
    if row.status == "PENDING":
        # A message needs a Temporal workflow to go to, and without the message the sweep would start the run.
        await submission.start_or_close(services, row)
    if row.status != "CANCELLED":
        await services.runs.cancel(str(run_id), CancelRequest(caller.name, body.reason if body else ""))
    return PlainResponse({"run_id": str(run_id), "state": "received"}, 202)


@router.post("/{run_id}/signals/{name}", status_code=202, response_model=shapes.SignalReceipt)
@needs(Role.REVIEWER)
async def signal_run(
    run_id: RunId,
    name: Annotated[str, Path(description="The signal that a WAIT node names.", max_length=200)],
    caller: CallerDep,
    services: ServicesDep,
    body: requests.SendSignal | None = None,
) -> Response:
    """Send a signal. 202: it was received, and is kept until a node takes it. 409: the run has ended."""
    given = body or requests.SendSignal()
    signal = await signalling.send(services, caller, run_id, name, given)
    receipt = {"run_id": str(run_id), "state": "received", "name": name, "signal_id": signal.signal_id}
    return PlainResponse(receipt, 202)
