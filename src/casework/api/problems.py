"""Problem documents (RFC 9457): every error of every route leaves through here, in one form.

An error of ours becomes the problem of the nearest class in `_KINDS`, with its own message as the detail. What nobody
foresaw becomes a 500 that says nothing of the inside; its traceback goes to the log. `type` is a stable name for
programs, `detail` a sentence for people.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from casework.errors import (
    AccessError,
    CaseworkError,
    FieldsError,
    IdempotencyConflictError,
    InputError,
    NotFoundError,
    RetryableError,
    StaleReviewError,
    StateError,
    UnauthenticatedError,
    UnreachableError,
)
from casework.values import dumps

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:casework:problem:"
RETRY_AFTER_S = 2
"""What a 503 tells the caller to wait, in seconds, where the fault itself names no time."""


class Kind(NamedTuple):
    """One kind of problem."""

    status: int
    slug: str
    title: str


_INTERNAL = Kind(500, "internal", "Something went wrong here")
_KINDS: dict[type[Exception], Kind] = {
    UnauthenticatedError: Kind(401, "unauthenticated", "A valid token is needed"),
    AccessError: Kind(403, "forbidden", "This token may not do that"),
    NotFoundError: Kind(404, "not-found", "There is no such thing"),
    StaleReviewError: Kind(409, "stale-review", "The review cannot take this decision"),
    IdempotencyConflictError: Kind(409, "idempotency-conflict", "The idempotency key was used with another body"),
    StateError: Kind(409, "state", "The present state does not allow it"),
    InputError: Kind(422, "input", "The request does not hold"),
    UnreachableError: Kind(503, "unavailable", "A server that is needed cannot be reached"),
    RetryableError: Kind(503, "unavailable", "A server that is needed cannot be reached"),
}
_HTTP_KINDS = {
    400: Kind(400, "bad-request", "The request cannot be read"),
    404: _KINDS[NotFoundError],
    405: Kind(405, "method-not-allowed", "The path knows no such method"),
    413: Kind(413, "too-large", "The body is too large"),
    415: Kind(415, "media-type", "The body is not sent as JSON"),
}
"""Problems of the HTTP door itself, by their status."""


def kinds() -> list[Kind]:
    """Every kind of problem that can be answered, by status and type."""
    return sorted({*_KINDS.values(), *_HTTP_KINDS.values(), _INTERNAL})


def problem(
    kind: Kind, detail: str, *, headers: Mapping[str, str] | None = None, facts: Mapping[str, Any] | None = None
) -> Response:
    """The response of one problem; `facts` are members of the document beside the standard ones."""
    document = {**(facts or {}), "type": TYPE_PREFIX + kind.slug, "title": kind.title, "status": kind.status}
    body = dumps({**document, "detail": detail})
    return Response(body, kind.status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def of_error(error: Exception) -> Response:
    """The problem of an error of ours; of any other, the one that tells nothing."""
    kind = next((_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS), _INTERNAL)
    if kind is _INTERNAL:
        return problem(kind, "The request was not served. Try again; if it stays so, look into the server's log.")
    return problem(kind, str(error), headers=_headers(kind, error), facts=_facts(error))


def _headers(kind: Kind, error: Exception) -> dict[str, str]:
    if kind.status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if kind.status == 503:
        return {"Retry-After": str(round(getattr(error, "retry_after", None) or RETRY_AFTER_S))}
    return {}


def _facts(error: Exception) -> dict[str, Any]:
    if isinstance(error, FieldsError):
        return {"errors": error.errors}
    if isinstance(error, InputError) and error.field:
        return {"errors": [{"field": error.field, "message": str(error)}]}
    return dict(getattr(error, "details", {}))


async def _ours(_: Request, error: Exception) -> Response:
    response = of_error(error)
    if response.status_code == 500:
        log.error("unforeseen %s", type(error).__name__, exc_info=error)
    return response


async def _unforeseen(_: Request, error: Exception) -> Response:
    """The outermost handler; the server below it logs the traceback itself."""
    return of_error(error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "another method")
    details = {
        404: f"There is nothing at {request.url.path}. The paths are listed in /openapi.json.",
        405: f"{request.method} is not possible at {request.url.path}. Use {allowed}.",
    }
    kind = _HTTP_KINDS.get(error.status_code) or Kind(error.status_code, "http", HTTPStatus(error.status_code).phrase)
    return problem(kind, details.get(error.status_code, str(error.detail)), headers=error.headers)


async def _validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return of_error(FieldsError("The request does not hold; `errors` names each field.", fields_of(error.errors())))


def fields_of(errors: Sequence[Any]) -> list[dict[str, str]]:
    """Pydantic's errors as field and message; the field is dotted, without the leading `body` or `query`."""
    found = []
    for error in errors:
        place = [str(part) for part in error["loc"]]
        inner = place[1:] if len(place) > 1 and place[0] in {"body", "query", "path", "header"} else place
        found.append({"field": ".".join(inner) or "body", "message": _message(error)})
    return found


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "is required"
    text = str(error["msg"]).removeprefix("Value error, ")
    given = error.get("input")
    if isinstance(given, (str, int, bool)) and len(str(given)) <= 100:
        return f"{text}, not {given!r}"
    return text


def install(app: FastAPI) -> None:
    """Send every error of `app` through this module."""
    app.add_exception_handler(CaseworkError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unforeseen)
