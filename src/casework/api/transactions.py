"""Routes under /v1/transactions: put in, list, look at one, and answer for one that failed."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from casework.api import process_render as render
from casework.api import process_requests as requests
from casework.api import process_shapes as shapes
from casework.api import transaction_doing as doing
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.paging import CursorText, Limit, TextFilter, cursor_of, next_of
from casework.api.requests import Short
from casework.api.services import ServicesDep
from casework.process.policies import Answer
from casework.process.tasks import Remedy
from casework.store.processes import lists
from casework.store.processes.lists import Wanted

router = APIRouter(prefix="/v1/transactions", tags=["transactions"], route_class=ExactRoute)

Id = Annotated[UUID, Path(description="The Transaction's id.")]


@router.post("", status_code=201, response_model=shapes.Transaction, responses={200: {"model": shapes.Transaction}})
@needs(Role.OPERATOR)
async def add_transaction(body: requests.AddTransaction, caller: CallerDep, services: ServicesDep) -> Response:
    """Put a Transaction in. 201: it is new; 200: the one that came with the same natural key."""
    row, new = await doing.add(services, caller, body)
    headers = {"Location": f"/v1/transactions/{row.uuid}"}
    return PlainResponse(render.transaction(row), 201 if new else 200, headers=headers)


@router.get("", response_model=shapes.TransactionPage)
@needs(Role.VIEWER)
async def list_transactions(
    *,
    caller: CallerDep,
    services: ServicesDep,
    status: TextFilter = None,
    process: Annotated[Short | None, Query(description="At which process it is.")] = None,
    claim: Annotated[UUID | None, Query(description="In which tray it is.")] = None,
    parent: Annotated[UUID | None, Query(description="From which it was split.")] = None,
    clone_of: Annotated[UUID | None, Query(description="Whose place it takes.")] = None,
    key: Annotated[Short | None, Query(description="A part of its natural key.")] = None,
    natural_key: Annotated[
        Short | None, Query(description="Its natural key, the whole of it: there is one at most.")
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Transactions, newest first, page by page."""
    wanted = Wanted(caller.tenant, status, process, claim, parent, clone_of, key, natural_key)
    async with services.db.transaction() as conn:
        page = await lists.page(conn, wanted, cursor_of(cursor), limit)
    return PlainResponse({"items": [render.transaction(row) for row in page.rows], "next_cursor": next_of(page)})


@router.get("/{uuid}", response_model=shapes.TransactionDetail)
@needs(Role.VIEWER)
async def show_transaction(uuid: Id, caller: CallerDep, services: ServicesDep) -> Response:
    """A Transaction with stages, steps, errors, runs, children and clones, while it goes on."""
    return PlainResponse(await doing.detail(services, caller.tenant, uuid))


@router.post("/{uuid}/retry", response_model=shapes.Answered)
@needs(Role.OPERATOR)
async def retry_transaction(uuid: Id, body: requests.Retry, caller: CallerDep, services: ServicesDep) -> Response:
    """Let a failed Transaction go on at a task. 409: it has no error, or the policy has not this answer."""
    remedy = Remedy(Answer.RESUME, at=body.at, data=body.data)
    return PlainResponse(await doing.answer(services, caller, uuid, remedy))


@router.post("/{uuid}/clone", response_model=shapes.Answered)
@needs(Role.OPERATOR)
async def clone_transaction(uuid: Id, body: requests.Clone, caller: CallerDep, services: ServicesDep) -> Response:
    """End a failed Transaction by ABORTED, and let a new one go on in its place. 409: it has no error."""
    remedy = Remedy(Answer.CLONE, into=body.into, data=body.data)
    return PlainResponse(await doing.answer(services, caller, uuid, remedy))


@router.post("/{uuid}/complete", response_model=shapes.Answered)
@needs(Role.OPERATOR)
async def complete_transaction(uuid: Id, body: requests.Complete, caller: CallerDep, services: ServicesDep) -> Response:
    """Complete a failed Transaction by hand. 409: it has no error, or the policy has not this answer."""
    return PlainResponse(await doing.answer(services, caller, uuid, Remedy(Answer.COMPLETE, data=body.data)))


@router.post("/{uuid}/abort", response_model=shapes.Answered)
@needs(Role.OPERATOR)
async def abort_transaction(uuid: Id, caller: CallerDep, services: ServicesDep) -> Response:
    """End a failed Transaction by ABORTED. 409: it has no error."""
    return PlainResponse(await doing.answer(services, caller, uuid, Remedy(Answer.ABORT)))
