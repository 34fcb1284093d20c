"""/healthz: the process lives. /readyz: it can serve, or what stands in its way."""

from __future__ import annotations

import asyncio
import logging

from fastapi import APIRouter
from starlette.responses import Response

from casework.api import shapes
from casework.api.access import open_to_all
from casework.api.body import PlainResponse
from casework.api.openapi import OPEN_MARK
from casework.api.services import Services, ServicesDep
from casework.errors import CaseworkError, UnreachableError
from casework.store import health as store_health
from casework.store import migrate

log = logging.getLogger(__name__)

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=shapes.Health, openapi_extra=OPEN_MARK)
@open_to_all
async def healthz() -> Response:
    """The process lives; asks nothing of anyone."""
    return PlainResponse({"status": "ok"})


@router.get("/readyz", response_model=shapes.Health, openapi_extra=OPEN_MARK)
@open_to_all
async def readyz(services: ServicesDep) -> Response:
    """The database answers and takes writes, and Temporal answers; else 503 with what is wrong."""
    wrong = [text for text in await asyncio.gather(_database(services), _temporal(services)) if text]
    if wrong:
        raise UnreachableError(" ".join(wrong))
    return PlainResponse({"status": "ok"})


async def _database(services: Services) -> str | None:
    try:
        async with services.db.transaction() as conn:
            read_only = await store_health.takes_no_writes(conn)
            missing = await migrate.pending(conn)
        if read_only:
            await services.db.renew()  # another server may be behind the address by now
            return "The database takes no writes: it is read-only."
    except CaseworkError as error:
        # The reason may name hosts and logins, and this route is open to all: it goes to the log.
        log.warning("not ready: %s", error)
        return "The database does not answer."
    return "The tables are older than this release: run `casework migrate`." if missing else None


async def _temporal(services: Services) -> str | None:
    try:
        await services.runs.check()
    except CaseworkError as error:
        log.warning("not ready: %s", error)
        return "Temporal does not answer."
    return None
