"""Route /v1/inbox: what others send for an application's input Monitor, accepted once for its key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from casework.api import process_shapes as shapes
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.services import Services, ServicesDep
from casework.durable.inbox import InboxModule
from casework.errors import NotFoundError
from casework.sources.inbox import accept

router = APIRouter(prefix="/v1/inbox", tags=["inbox"], route_class=ExactRoute)

_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and body is the same item; without one the body itself is the key.",
    "schema": {"type": "string", "maxLength": 255},
}


@router.post(
    "/{name}",
    status_code=202,
    response_model=shapes.InboxReceipt,
    responses={200: {"model": shapes.InboxReceipt}},
    openapi_extra={**_BODY, "parameters": [_KEY]},
)
@needs(Role.OPERATOR)
async def send_item(
    name: Annotated[str, Path(description="The name of the inbox.", max_length=100)],
    request: Request,
    caller: CallerDep,
    services: ServicesDep,
) -> Response:
    """Send an item, a JSON object. 202: it is kept, and waits for the Monitor; 200: it was sent before."""
    module = _module(services, caller.tenant, name)
    item = accept(request.headers, await request.body(), datetime.now(UTC), module.settings)
    new = await module.inbox(services.db).put(item)
    receipt = {"inbox": name, "key": item.key, "state": "accepted" if new else "known"}
    return PlainResponse(receipt, 202 if new else 200)


def _module(services: Services, tenant: str, name: str) -> InboxModule:
    found = (each for each in services.app.modules if isinstance(each, InboxModule) and each.tenant == tenant)
    module = next((each for each in found if each.settings.name == name), None)
    if module is None:
        raise NotFoundError(f"The application has no inbox {name!r}. Add InboxModule to its modules.")
    return module
