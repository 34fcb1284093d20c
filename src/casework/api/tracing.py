"""A span for each request: named by its route, joined to the caller's trace, and to the run that it starts.

The caller's `traceparent` is honoured. A request that starts a run and comes without one shares the trace of the run.
Where traces are off this does nothing. Health checks and scrapes of metrics have no span: they would bury the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from casework.telemetry import records
from casework.telemetry.identity import place_of
from casework.telemetry.records import SpanRecord
from casework.telemetry.requests import REQUEST, RequestSpan

if TYPE_CHECKING:
    from casework.telemetry.tracer import Tracer

UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class TraceRequests:
    """The middleware; the tracer, where there is one, is `app.state.tracer`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and write the span when the answer is sent."""
        tracer = _tracer(scope)
        if tracer is None:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        request = RequestSpan(place_of(_trace_headers(scope)), tracer.begins)
        began, seen = time.time_ns(), _Status()
        token = REQUEST.set(request)
        try:
            await self._app(scope, receive, seen.watching(send))
        finally:
            REQUEST.reset(token)
            tracer.record(_span(scope, request, began, seen.status))


class _Status:
    """The status of the answer; 500 until there is one."""

    def __init__(self) -> None:
        self.status = 500

    def watching(self, send: Send) -> Send:
        """`send`, with an eye on the status."""

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            await send(message)

        return watched


def _tracer(scope: Scope) -> Tracer | None:
    if scope["type"] != "http" or scope["path"] in UNTRACED:
        return None
    found: Tracer | None = getattr(scope["app"].state, "tracer", None)
    return found


def _trace_headers(scope: Scope) -> dict[str, str]:
    wanted = (b"traceparent", b"tracestate")
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in wanted}


def _span(scope: Scope, request: RequestSpan, began: int, status: int) -> SpanRecord:
    route = getattr(scope.get("route"), "path", None)
    method = scope["method"] if scope["method"] in METHODS else "_OTHER"
    about = {**_of_run(scope, request), **_of_http(scope, method, route, status)}
    return SpanRecord(
        name=f"{'HTTP' if method == '_OTHER' else method} {route}".removesuffix(" None"),
        place=request.place,
        parent=request.caller,
        start=began,
        end=time.time_ns(),
        attributes=about,
        kind="server",
        error=str(status) if status >= 500 else None,
    )


def _of_http(scope: Scope, method: str, route: str | None, status: int) -> dict[str, str | int]:
    """By the conventions for HTTP servers. No query, address or agent of the caller: they can be personal."""
    made: dict[str, str | int] = {
        "http.request.method": method,
        "http.response.status_code": status,
        "url.scheme": scope.get("scheme", "http"),
        "url.path": scope["path"],
    }
    return {**made, "http.route": route} if route else made


def _of_run(scope: Scope, request: RequestSpan) -> dict[str, str]:
    """Which run it is about; the request is about the run as a whole, whose path is empty."""
    caller: Any = scope["state"].get("caller")
    made = {} if caller is None else {records.TENANT: caller.tenant}
    run_id = request.run_id or _named(scope.get("path_params") or {})
    return made if run_id is None else {**made, records.RUN_ID: str(run_id), records.PATH: ""}


def _named(params: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(str(params["run_id"]))
    except (KeyError, ValueError):
        return None
