"""Switching traces on: by the standard variables, with the extra installed, or not at all."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from casework.errors import SettingsError
from casework.settings import TelemetrySettings

if TYPE_CHECKING:
    from casework.telemetry.tracer import Tracer

CLOSE_S = 5.0
"""Longest wait at a graceful stop for the last spans to be sent."""
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_PATH = "v1/traces"
log = logging.getLogger("casework.telemetry")


def wanted(settings: TelemetrySettings) -> bool:
    """Whether the settings ask for traces."""
    off = (settings.disabled or "").lower() == "true" or settings.exporter == "none"
    return not off and bool(settings.endpoint or settings.traces_endpoint)


@contextmanager
def tracing(settings: TelemetrySettings, service: str, *, for_tools: bool = False) -> Iterator[Tracer | None]:
    """The process's tracer while the block lasts, or None where traces are off; the last spans are sent at its end.

    `service` is the process's name in traces where OTEL_SERVICE_NAME gives none. With `for_tools` the normal
    OpenTelemetry API makes spans of this process too. The API has no tools, and its web framework would add spans.

    Raises:
        SettingsError: traces are asked for and the extra is not installed, or a setting of them does not hold.
    """
    tracer = start_tracing(settings, service)
    if tracer is not None and for_tools:
        tracer.be_global()
    try:
        yield tracer
    finally:
        if tracer is not None:
            tracer.close(CLOSE_S)


def start_tracing(settings: TelemetrySettings, service: str) -> Tracer | None:
    """As `tracing`; whoever calls this closes the tracer."""
    if not wanted(settings):
        return None
    named = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" if settings.traces_endpoint else "OTEL_EXPORTER_OTLP_ENDPOINT"
    if not _installed():
        raise SettingsError(
            f"{named} is set, and the packages that send traces are not installed. Install them with "
            "pip install 'casework[telemetry]', or unset the variable (OTEL_SDK_DISABLED=true switches off, too).",
            field=named,
        )
    address = _address(settings, named)
    _check_protocol(settings)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # an extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # as above

    from casework.telemetry.sampling import sampler_of  # noqa: PLC0415  # as above
    from casework.telemetry.tracer import Tracer  # noqa: PLC0415  # as above

    sampler = sampler_of(settings.sampler, settings.sampler_arg)
    exporter = OTLPSpanExporter(endpoint=address, headers=_headers(settings))
    tracer = Tracer(BatchSpanProcessor(exporter), Resource.create(_resource(settings, service)), sampler)
    _quieten()
    log.info("traces are sent to %s", urlsplit(address).hostname)
    return tracer


def _installed() -> bool:
    try:
        return all(importlib.util.find_spec(name) for name in _NEEDED)
    except ModuleNotFoundError:
        return False


def _address(settings: TelemetrySettings, named: str) -> str:
    base = (settings.endpoint or "").rstrip("/")
    address = settings.traces_endpoint or f"{base}/{_PATH}"
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        # The value is not shown: an address may hold a password.
        raise SettingsError(f"{named} is no address of a collector. Write it like http://127.0.0.1:4318.", field=named)
    return address


def _check_protocol(settings: TelemetrySettings) -> None:
    given = settings.traces_protocol or settings.protocol
    if given != "http/protobuf":
        raise SettingsError(
            f"The protocol of traces is {given!r:.100}, and they are sent by http/protobuf only. Set "
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf and the collector's HTTP port (4318 as a rule).",
            field="OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        )


def _headers(settings: TelemetrySettings) -> dict[str, str] | None:
    given = settings.traces_headers or settings.headers
    return None if given is None else _pairs(given.reveal(), "OTEL_EXPORTER_OTLP_HEADERS")


def _resource(settings: TelemetrySettings, service: str) -> dict[str, str]:
    given = _pairs(settings.resource_attributes or "", "OTEL_RESOURCE_ATTRIBUTES")
    ours = {
        "service.name": service,
        "service.version": version("casework"),
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    return {**ours, **given, **({"service.name": settings.service_name} if settings.service_name else {})}


def _pairs(text: str, named: str) -> dict[str, str]:
    """`name=value,name=value`, percent-encoded, as the standard variables have it."""
    made = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if part.strip() and (not equals or not name.strip()):
            raise SettingsError(f"{named} is not written like name=value,name=value.", field=named)
        if equals:
            made[name.strip()] = unquote(value.strip())
    return made


def _quieten() -> None:
    """A collector that is away is told once a minute, in our words: the SDK's may name an address with a secret."""
    from casework.telemetry.silence import OncePerMinute  # noqa: PLC0415  # beside its only user

    once = OncePerMinute("spans cannot be sent to the collector; what does not fit the queue is dropped")
    for name in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal"):
        logging.getLogger(name).addFilter(once)
