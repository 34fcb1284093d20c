"""The OpenTelemetry SDK behind two verbs: `record` a span that is over, `open` one around what happens now.

Spans wait in a bounded queue and a thread of the SDK sends them in batches; whoever makes a span never waits, and what
a collector that is away cannot take is dropped. Ids are given from outside where a span has a place of its own.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from casework.telemetry.calls import ACTIVE
from casework.telemetry.identity import Place
from casework.telemetry.records import RUN_ID, Attributes, Kind, SpanRecord

_KINDS = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
_given: ContextVar[Place | None] = ContextVar("casework_span_ids", default=None)


class Tracer:
    """Spans of one process. `close` it at the end, or the last ones are lost."""

    def __init__(self, processor: SpanProcessor, resource: Resource, sampler: Sampler) -> None:
        # No hook at the interpreter's exit: it would wait there for a collector that is away.
        self._provider = TracerProvider(
            sampler=sampler, resource=resource, id_generator=_GivenIds(), shutdown_on_exit=False
        )
        self._provider.add_span_processor(_CommonAttributes())
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("casework")
        self._sampler = sampler

    def be_global(self) -> None:
        """Let the normal OpenTelemetry API, as tools use it, make spans of this process; the first to ask stays."""
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(self._provider)

    def begins(self, trace_id: int) -> bool:
        """Whether a trace that begins in this process with that id is recorded."""
        return self._sampler.should_sample(None, trace_id, "run").decision is Decision.RECORD_AND_SAMPLE

    def record(self, span: SpanRecord) -> None:
        """Hand over a span that is over; never waits, never raises for the collector's sake."""
        made = self._start(span.name, span.place, span.parent, span.attributes, span.kind, span.links, span.start)
        if span.error is not None:
            _fail(made, span.error)
        made.end(span.end)

    @contextmanager
    def open(self, name: str, parent: Place, attributes: Attributes, *, kind: Kind = "internal") -> Iterator[OpenSpan]:
        """A span around the block, current in it for the OpenTelemetry API; an exception sets its status."""
        made = self._start(name, None, parent, attributes, kind, (), time.time_ns())
        with trace.use_span(made, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield OpenSpan(made)
            except BaseException as error:
                _fail(made, error_kind(error))
                raise

    def close(self, timeout_s: float) -> None:
        """Send what waits, for at most that many seconds."""
        # The SDK's own shutdown waits for 30 seconds, and takes no other number.
        closing = threading.Thread(target=self._provider.shutdown, name="casework-traces-close", daemon=True)
        closing.start()
        closing.join(timeout_s)

    def _start(
        self,
        name: str,
        place: Place | None,
        parent: Place | None,
        attributes: Attributes,
        kind: Kind,
        links: tuple[Place, ...],
        start: int,
    ) -> trace.Span:
        # Never the current context: a span of a run stands where its path says, whoever happens to record it.
        above = Context() if parent is None else set_span_in_context(NonRecordingSpan(_context(parent)), Context())
        token = _given.set(place)
        try:
            return self._tracer.start_span(
                name,
                above,
                _KINDS[kind],
                attributes,
                [Link(_context(link)) for link in links],
                start,
                record_exception=False,
            )
        finally:
            _given.reset(token)


class OpenSpan:
    """A span that is not over yet."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def place(self) -> Place:
        """Where it stands."""
        context = self._span.get_span_context()
        state = context.trace_state.to_header()
        return Place(context.trace_id, context.span_id, context.trace_flags.sampled, state)

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Note something known by now."""
        self._span.set_attribute(name, value)


def error_kind(error: BaseException) -> str:
    """The kind of an error: its class, or what the engine was told it is."""
    told = getattr(error, "type", None)
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return told if isinstance(told, str) and told else type(error).__name__


def _fail(span: trace.Span, kind: str) -> None:
    """The kind alone: the text of an error may say what must not leave."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))


def _context(place: Place) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if place.sampled else TraceFlags.DEFAULT)
    return SpanContext(
        place.trace_id,
        place.span_id,
        is_remote=True,
        trace_flags=flags,
        trace_state=TraceState.from_header([place.state]),
    )


class _GivenIds(IdGenerator):
    """The ids of the place that is being started, else random ones."""

    def generate_span_id(self) -> int:
        place = _given.get()
        return place.span_id if place else random.getrandbits(64) or 1  # names a span, guards nothing

    def generate_trace_id(self) -> int:
        place = _given.get()
        return place.trace_id if place else random.getrandbits(128) or 1  # as above

    def is_trace_id_random(self) -> bool:
        """Whether the lowest 56 bits are random; in a run's id they are."""
        return True


class _CommonAttributes(SpanProcessor):
    """Gives spans that a tool makes by itself the run and path that all others have."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002  # the SDK's signature
        active = ACTIVE.get()
        if active is not None and span.attributes is not None and RUN_ID not in span.attributes:
            span.set_attributes(active.common)
