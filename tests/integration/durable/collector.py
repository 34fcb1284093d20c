"""A collector of traces over real HTTP: takes OTLP, decodes it and keeps the spans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """One span as it arrived. Ids are hexadecimal, `parent` is "" at a root; `links` are (trace, span)."""

    name: str
    service: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    failed: bool
    links: tuple[tuple[str, str], ...]

    @property
    def path(self) -> str | None:
        return self.attributes.get("casework.path")


@dataclass
class Collector:
    """What arrived. `bodies` are the requests as they were sent, `headers` their headers."""

    url: str
    spans: list[Seen] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str, path: str | None = None) -> Seen:
        found = [span for span in self.named(name) if path in (None, span.path)]
        assert len(found) == 1, f"{name} at {path}: {found}"
        return found[0]

    def drawn(self) -> str:
        """The spans as a tree, for reading a failed test."""
        known = {span.id for span in self.spans}
        roots = [span for span in self.spans if span.parent not in known]
        return "\n".join(line for root in sorted(roots, key=lambda span: span.start) for line in self._lines(root, 0))

    def _lines(self, span: Seen, depth: int) -> Iterator[str]:
        yield f"{'  ' * depth}{span.name} [{span.path}]{' FAILED' if span.failed else ''}"
        for child in sorted(self.spans, key=lambda each: each.start):
            if child.parent == span.id and child.trace == span.trace:
                yield from self._lines(child, depth + 1)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector at a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    made = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    server.collector = made  # type: ignore[attr-defined]  # the handler finds it there
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        collector: Collector = self.server.collector  # type: ignore[attr-defined]  # set by `collecting`
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            collector.bodies.append(body)
            collector.headers.append(dict(self.headers.items()))
            collector.spans += _spans(ExportTraceServiceRequest.FromString(body))
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name in the library
        """Nothing: the test speaks for itself."""


def _spans(request: ExportTraceServiceRequest) -> Iterator[Seen]:
    for resource in request.resource_spans:
        service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Seen(
                    name=span.name,
                    service=service,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes={each.key: _value(each.value) for each in span.attributes},
                    failed=span.status.code == 2,
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
