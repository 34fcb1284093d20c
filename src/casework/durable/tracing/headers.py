"""Trace context in the headers of the engine, under the key and in the form of the SDK's own tracing."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter

from casework.telemetry.identity import Place, place_of

KEY = "_tracer-data"
"""As `temporalio.contrib.opentelemetry` has it, so that a run started by a client which uses that joins its trace."""


def with_place(headers: Mapping[str, Payload], place: Place) -> dict[str, Payload]:
    """`headers` with `place` in them."""
    return {**headers, KEY: PayloadConverter.default.to_payloads([place.carrier()])[0]}


def place_in(headers: Mapping[str, Payload]) -> Place | None:
    """The place in `headers`; None where there is none, or one that does not hold."""
    payload = headers.get(KEY)
    if payload is None:
        return None
    try:
        carrier = PayloadConverter.default.from_payloads([payload])[0]
    except Exception:  # noqa: BLE001  # headers come from outside; what cannot be read must not stop a run
        return None
    if not isinstance(carrier, Mapping):
        return None
    return place_of({str(name).lower(): value for name, value in carrier.items() if isinstance(value, str)})
