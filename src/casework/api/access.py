"""Who may do what: bearer tokens, five roles, and a door that is shut unless a route says who may enter.

Every request passes `authorize`, which hangs on the application as a whole. It looks at what the endpoint declares:
`@needs(role)` or `@open_to_all`. An endpoint that declares nothing is refused to everyone, so a forgotten declaration
shows at the first call and never as a hole.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from casework.api.services import Services, services_of
from casework.errors import AccessError, StoreUnavailableError, UnauthenticatedError
from casework.store import tokens


class Role(StrEnum):
    """What a token may do. `admin` may do all in its tenant, and every role but `metrics` may read there.

    `metrics` is for the machine that watches the installation: figures of every tenant, and no case of any.
    """

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    METRICS = "metrics"


ADMITS: dict[Role, frozenset[Role]] = {
    Role.VIEWER: frozenset(Role) - {Role.METRICS},
    Role.REVIEWER: frozenset({Role.REVIEWER, Role.ADMIN}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.ADMIN}),
    Role.ADMIN: frozenset({Role.ADMIN}),
    Role.METRICS: frozenset({Role.METRICS}),
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
    known = request.app.state.watchers if need is Role.METRICS else None
    caller = request.state.caller = await _identify(credentials, services, known)
    if not isinstance(need, Role):
        raise AccessError(f"{request.url.path} declares no role, so nobody may use it. Declare one with @needs.")
    if not caller.has(need):
        held = ", ".join(sorted(caller.roles)) or "none"
        raise AccessError(
            f"{request.method} {request.url.path} needs the role {need}; {caller.name!r} has {held}. "
            "Use a token with that role (casework token create)."
        )
    return caller


async def _identify(
    credentials: HTTPAuthorizationCredentials | None, services: Services, known: Watchers | None
) -> Caller:
    if credentials is None:
        raise UnauthenticatedError("No token was sent. Send the header Authorization: Bearer TOKEN.")
    token = credentials.credentials
    found = await (_caller_of(token, services) if known is None else known.caller_of(token, services))
    if found is None:
        raise UnauthenticatedError("The token is not known, or it was revoked. Ask for a new one.")
    return found


async def _caller_of(token: str, services: Services) -> Caller | None:
    async with services.db.transaction() as conn:
        found = await tokens.find(conn, token)
    return None if found is None else Caller(found.name, found.tenant, found.roles)


class Watchers:
    """Who asked for /metrics before, so that it can be told that the database is away while the database is away.

    Tokens are checked in the database as long as it answers, so one that was revoked is refused. They are kept as
    hashes, the last few of them, and for the life of the process.
    """

    MOST = 16
    PATIENCE_S = 2.0
    """How long the check may take, in seconds: a scrape has about ten for everything."""

    def __init__(self) -> None:
        self._callers: dict[bytes, Caller] = {}

    async def caller_of(self, token: str, services: Services) -> Caller | None:
        """The caller; where the database is away, the one that this token stood for when it last answered.

        Raises:
            StoreUnavailableError: it is away, and the token was not seen before.
        """
        key = hashlib.sha256(token.encode(errors="replace")).digest()
        try:
            async with asyncio.timeout(self.PATIENCE_S):
                found = await _caller_of(token, services)
        except (StoreUnavailableError, TimeoutError):
            if key not in self._callers:
                raise StoreUnavailableError("The database does not answer, so the token cannot be checked.") from None
            return self._callers[key]
        self._keep(key, found)
        return found

    def _keep(self, key: bytes, caller: Caller | None) -> None:
        self._callers.pop(key, None)
        if caller is not None and caller.has(Role.METRICS):
            self._callers[key] = caller
        while len(self._callers) > self.MOST:
            del self._callers[next(iter(self._callers))]


async def _known(caller: Annotated[Caller | None, Security(authorize)]) -> Caller:
    assert caller is not None, "an open endpoint has no caller"
    return caller


CallerDep = Annotated[Caller, Depends(_known)]
"""For endpoints: the authenticated caller."""
