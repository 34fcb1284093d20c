"""How values are written into histories: the canonical JSON of `casework.values`; Decimals keep their digits."""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    value_to_type,
)

from casework import values


class _CanonicalJson(EncodingPayloadConverter):
    """Encoding `json/plain`, readable by every Temporal tool."""

    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: Any) -> Payload:
        return Payload(metadata={"encoding": b"json/plain"}, data=values.dumps(value).encode())

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        value = values.loads(payload.data)
        return value if type_hint is None else value_to_type(type_hint, value)


class CaseworkPayloadConverter(CompositePayloadConverter):
    """The SDK's converters with its JSON replaced by ours."""

    def __init__(self) -> None:
        theirs = DefaultPayloadConverter.default_encoding_payload_converters
        kept = (made for made in theirs if not isinstance(made, JSONPlainPayloadConverter))
        super().__init__(*kept, _CanonicalJson())


DATA_CONVERTER = DataConverter(payload_converter_class=CaseworkPayloadConverter)
"""Used by every client, worker and replayer of the project."""
