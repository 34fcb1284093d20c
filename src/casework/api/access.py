"""Who may do what: bearer tokens, four roles, and a door that is shut unless a route says who may enter.

Every request passes `authorize`, which hangs on the application as a whole. It looks at what the endpoint declares:
`@needs(role)` or `@open_to_all`. An endpoint that declares nothing is refused to everyone, so a forgotten declaration
shows at the first call and never as a hole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from casework.api.services import Services, services_of
from casework.errors import AccessError, UnauthenticatedError
from casework.store import tokens


class Role(StrEnum):
    """What a token may do. `admin` may do all, and every role may read."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


ADMITS: dict[Role, frozenset[Role]] = {
    Role.VIEWER: frozenset(Role),
    Role.REVIEWER: frozenset({Role.REVIEWER, Role.ADMIN}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.ADMIN}),
    Role.ADMIN: frozenset({Role.ADMIN}),
}
"""Which roles a route lets in that needs the one on the left."""

_NEED = "__casework_needs__"
_OPEN = "open"
E = TypeVar("E", bound=Callable[..., Any])


@dataclass(frozen=True)
class Caller:
    """The authenticated one: name, tenant and roles, as the token says."""

    name: str
    tenant: str
    roles: frozenset[str]

    def has(self, role: Role) -> bool:
        """Whether one of the caller's roles is let in where `role` is needed."""
        return bool(self.roles & ADMITS[role])


def needs(role: Role) -> Callable[[E], E]:
    """Declare that an endpoint needs `role`."""

    def declare(endpoint: E) -> E:
        setattr(endpoint, _NEED, role)
        return endpoint

    return declare


def open_to_all(endpoint: E) -> E:
    """Declare that an endpoint asks for no token (health checks)."""
    setattr(endpoint, _NEED, _OPEN)
    return endpoint


def need_of(endpoint: object) -> Role | str | None:
    """What an endpoint declares: a role, "open", or None."""
    found: Role | str | None = getattr(endpoint, _NEED, None)
    return found


def is_open(endpoint: object) -> bool:
    """Whether an endpoint asks for no token."""
    return need_of(endpoint) == _OPEN


bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token made by `casework token create`, roles with it."
)


async def authorize(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
    services: Annotated[Services, Depends(services_of)],
) -> Caller | None:
    """The caller, once the endpoint's declaration lets it in; None at an open endpoint.

    Raises:
        UnauthenticatedError: there is no valid token.
        AccessError: the token has not the role, or the endpoint declares none.
    """
    need = need_of(request.scope.get("endpoint"))
    if need == _OPEN:
        return None
    caller = request.state.caller = await _identify(credentials, services)
    if not isinstance(need, Role):
        raise AccessError(f"{request.url.path} declares no role, so nobody may use it. Declare one with @needs.")
    if not caller.has(need):
        held = ", ".join(sorted(caller.roles)) or "none"
        raise AccessError(
            f"{request.method} {request.url.path} needs the role {need}; {caller.name!r} has {held}. "
            "Use a token with that role (casework token create)."
        )
    return caller


async def _identify(credentials: HTTPAuthorizationCredentials | None, services: Services) -> Caller:
    if credentials is None:
        raise UnauthenticatedError("No token was sent. Send the header Authorization: Bearer TOKEN.")
    found = await _caller_of(credentials.credentials, services)
    if found is None:
        raise UnauthenticatedError("The token is not known, or it was revoked. Ask for a new one.")
    return found


async def _caller_of(token: str, services: Services) -> Caller | None:
    async with services.db.transaction() as conn:
        found = await tokens.find(conn, token)
    return None if found is None else Caller(found.name, found.tenant, found.roles)


async def _known(caller: Annotated[Caller | None, Security(authorize)]) -> Caller:
    assert caller is not None, "an open endpoint has no caller"
    return caller


CallerDep = Annotated[Caller, Depends(_known)]
"""For endpoints: the authenticated caller."""
