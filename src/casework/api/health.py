"""/healthz: the process lives. /readyz: it can serve, or what stands in its way."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from casework.api import shapes
from casework.api.access import open_to_all
from casework.api.body import PlainResponse
from casework.api.openapi import OPEN_MARK
from casework.api.services import Services, ServicesDep
from casework.errors import CaseworkError, UnreachableError

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=shapes.Health, openapi_extra=OPEN_MARK)
@open_to_all
async def healthz() -> Response:
    """The process lives; asks nothing of anyone."""
    return PlainResponse({"status": "ok"})


@router.get("/readyz", response_model=shapes.Health, openapi_extra=OPEN_MARK)
@open_to_all
async def readyz(services: ServicesDep) -> Response:
    """Database and Temporal answer; else 503 with what is wrong."""
    wrong = [text for text in (await _database(services), await _temporal(services)) if text]
    if wrong:
        raise UnreachableError(" ".join(wrong))
    return PlainResponse({"status": "ok"})


async def _database(services: Services) -> str | None:
    try:
        await services.db.ping()
    except CaseworkError:
        # The reason may name hosts and logins; this route is open to all, so it goes to the log of the pool alone.
        return "The database does not answer."
    return None


async def _temporal(services: Services) -> str | None:
    try:
        await services.runs.check()
    except CaseworkError:
        return "Temporal does not answer."
    return None
