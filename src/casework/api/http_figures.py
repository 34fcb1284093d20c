"""What this process answered: requests and their times, by the route's template and never by the path that was sent.

Whoever asks chooses paths and methods, and must not choose how many time series there are: what no route matches is
counted under one name, and so is a method that HTTP does not know.
"""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
NO_ROUTE = "none"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds in seconds. An answer takes milliseconds; one that waits for a run's word may take half a minute."""

# A second series for each counter, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library typed all but this


class HttpFigures:
    """Counters of one application; `registry` gives them, and what the operating system says of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "casework_http_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "casework_http_request_duration_seconds",
            "From the request's head to the end of the answer.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self.registry,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class CountRequests:
    """The middleware. What ends in an exception was answered 500 by the server's outermost handler."""

    def __init__(self, app: ASGIApp, figures: HttpFigures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, then count."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            method = scope["method"] if scope["method"] in METHODS else OTHER
            route = getattr(scope.get("route"), "path", None) or NO_ROUTE
            self._figures.count(method, route, status, time.perf_counter() - began)
