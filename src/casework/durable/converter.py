"""How values are written into histories: the canonical JSON of `casework.values`; Decimals keep their digits.

What a dataclass of the contracts says by default is left out: every byte of a history is kept, read and replayed, and a
reader of an older history fills the same defaults in.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    value_to_type,
)

from casework import values
from casework.durable.blobs import Blobs, FolderBlobs
from casework.durable.keys import KeyRing
from casework.durable.object_blobs import ObjectBlobs
from casework.durable.payloads import Payloads
from casework.settings import HistorySettings


class _CanonicalJson(EncodingPayloadConverter):
    """Encoding `json/plain`, readable by every Temporal tool."""

    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: Any) -> Payload:
        return Payload(metadata={"encoding": b"json/plain"}, data=values.dumps(_said(value)).encode())

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        value = values.loads(payload.data)
        return value if type_hint is None else value_to_type(type_hint, value)


def _said(value: Any) -> Any:
    """A dataclass as what it says beyond its defaults; anything else as it is."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    parts = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
    return {field.name: part for field, part in parts if part != _default(field)}


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


class CaseworkPayloadConverter(CompositePayloadConverter):
    """The SDK's converters with its JSON replaced by ours."""

    def __init__(self) -> None:
        theirs = DefaultPayloadConverter.default_encoding_payload_converters
        kept = (made for made in theirs if not isinstance(made, JSONPlainPayloadConverter))
        super().__init__(*kept, _CanonicalJson())


DATA_CONVERTER = DataConverter(payload_converter_class=CaseworkPayloadConverter, payload_codec=Payloads())
"""Without a store for large values and without keys: says of such a value what is missing."""


def data_converter(settings: HistorySettings) -> DataConverter:
    """Used by every client, worker and replayer: values as JSON, offloaded and encrypted as the settings say.

    Raises:
        SettingsError: the key file is not there, can be read by others, or is none; or the object store cannot be had.
    """
    if settings.blobs is None and settings.keys is None:
        return DATA_CONVERTER
    keys = None if settings.keys is None else KeyRing(settings.keys)
    blobs = None if settings.blobs is None else _store(settings.blobs)
    failures = DefaultFailureConverter if keys is None else DefaultFailureConverterWithEncodedAttributes
    codec = Payloads(blobs, keys, settings.offload_bytes)
    return dataclasses.replace(DATA_CONVERTER, payload_codec=codec, failure_converter_class=failures)


def _store(place: str) -> Blobs:
    return ObjectBlobs(place) if "://" in place else FolderBlobs(Path(place))
