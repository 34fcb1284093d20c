"""What becomes of a value between its JSON and the engine: large ones are kept as blobs, all are encrypted if wanted.

The order is: JSON, compressed where it pays and is large, encrypted, kept as a blob if it is large. So a blob store
never sees what is in a value, and the reference that the history holds instead is readable without a key: it names the
blob, which must be possible for whoever cleans up or moves data and may not read it. Every process has this codec, also
one without blobs and keys, so that it says what it lacks and takes nothing for an error of a run.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import zlib
from collections.abc import Sequence
from typing import Self

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from casework.durable.blobs import UNOWNED, Blobs, folder_of
from casework.durable.keys import SETTING, Key, KeyRing
from casework.errors import PayloadUnreadableError

ENCRYPTED = b"binary/encrypted"
BLOB = b"casework/blob"
"""What stands for the kind of a payload that this codec made, under `encoding` in its metadata."""
KEY, NAME, FORM, SIZE = "casework-key", "casework-blob", "casework-form", "casework-bytes"
"""Further metadata: id of the key; name of the blob; how it is packed; how long it is unpacked."""
ABOUT = b"casework payload 1 "
"""What is encrypted cannot be put in another's place: the key's id is part of it."""
PAYS = 0.9
"""A value is kept compressed if that makes it smaller than this share."""
OFFLOAD_BYTES = 128 * 1024


class Payloads(PayloadCodec, WithSerializationContext):
    """The codec. `owner` is the Temporal workflow that the values belong to."""

    def __init__(
        self,
        blobs: Blobs | None = None,
        keys: KeyRing | None = None,
        offload_bytes: int = OFFLOAD_BYTES,
        owner: str = UNOWNED,
    ) -> None:
        self._blobs = blobs
        self._keys = keys
        self._offload_bytes = offload_bytes
        self._owner = owner

    def with_context(self, context: SerializationContext) -> Self:
        """The same for values of one workflow."""
        owner = None
        if isinstance(context, (WorkflowSerializationContext, ActivitySerializationContext)):
            owner = context.workflow_id
        return self.of(owner or UNOWNED)

    def of(self, owner: str) -> Self:
        """The same for values of that owner."""
        made = copy.copy(self)
        made._owner = owner
        return made

    @property
    def blobs(self) -> Blobs | None:
        """The store for large values."""
        return self._blobs

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As they go to the engine.

        Raises:
            PayloadUnreadableError: a blob cannot be kept.
        """
        return [await self._encoded(payload, large=False) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As they were.

        Raises:
            PayloadUnreadableError: a key or a blob is missing, or does not hold.
        """
        return [await self._decoded(payload) for payload in payloads]

    async def as_if_large(self, payload: Payload) -> Payload:
        """As `encode`, but kept as a blob if there is a store."""
        return await self._encoded(payload, large=True)

    def keeps_as(self, payload: Payload) -> bool:
        """Whether this process would keep a large value in the same way, with the same key."""
        key = None if self._keys is None else self._keys.writing()
        encoding = BLOB if self._blobs is not None else ENCRYPTED if key is not None else b"json/plain"
        found = payload.metadata.get("encoding"), payload.metadata.get(KEY)
        return found == (encoding, None if key is None else key.id.encode())

    async def _encoded(self, payload: Payload, *, large: bool) -> Payload:
        key = None if self._keys is None else self._keys.writing()
        if self._blobs is not None and (large or payload.ByteSize() > self._offload_bytes):
            return await self._offloaded(self._blobs, payload.SerializeToString(), key)
        if key is None:
            return payload
        metadata = {"encoding": ENCRYPTED, KEY: key.id.encode()}
        return Payload(metadata=metadata, data=key.seal(payload.SerializeToString(), ABOUT + key.id.encode()))

    async def _offloaded(self, blobs: Blobs, raw: bytes, key: Key | None) -> Payload:
        digest = hashlib.sha256(raw).hexdigest() if key is None else key.name_of(raw)
        name = f"{folder_of(self._owner)}/{digest}"
        packed = await asyncio.to_thread(zlib.compress, raw)
        zipped = len(packed) < PAYS * len(raw)
        data = packed if zipped else raw
        metadata = {"encoding": BLOB, NAME: name.encode(), SIZE: str(len(raw)).encode()}
        metadata[FORM] = b"zlib" if zipped else b"plain"
        if key is not None:
            metadata[KEY] = key.id.encode()
        try:
            if not await blobs.has(name):
                await blobs.put(name, data if key is None else key.seal(data, ABOUT + name.encode()))
        except OSError as error:
            raise PayloadUnreadableError(
                f"A value of {len(raw):,} bytes cannot be kept as a blob ({error}). Mend the store that CASEWORK_BLOBS "
                "names; it is tried again."
            ) from error
        return Payload(metadata=metadata)

    async def _decoded(self, payload: Payload) -> Payload:
        encoding = payload.metadata.get("encoding")
        if encoding == ENCRYPTED:
            key_id = payload.metadata[KEY].decode() if KEY in payload.metadata else ""
            return _parsed(self._key(key_id).open(payload.data, ABOUT + key_id.encode()))
        return await self._fetched(payload) if encoding == BLOB else payload

    async def _fetched(self, payload: Payload) -> Payload:
        try:
            name, size = payload.metadata[NAME].decode(), int(payload.metadata[SIZE])
        except ValueError as error:
            raise PayloadUnreadableError("A reference to a blob does not hold: somebody made it by hand.") from error
        data = await self._blob(name)
        key = self._key(payload.metadata[KEY].decode()) if KEY in payload.metadata else None
        if key is not None:
            data = key.open(data, ABOUT + name.encode())
        raw = _unpacked(data, size) if payload.metadata[FORM] == b"zlib" else data
        digest = hashlib.sha256(raw).hexdigest() if key is None else key.name_of(raw)
        if digest != name.rpartition("/")[2]:
            raise PayloadUnreadableError(f"Blob {name} is not what was kept under its name. Bring back a copy of it.")
        return _parsed(raw)

    async def _blob(self, name: str) -> bytes:
        if self._blobs is None:
            raise PayloadUnreadableError(
                f"A value of a history is blob {name}, and this process has no blob store. Set CASEWORK_BLOBS to what "
                "the other processes have; nothing is lost."
            )
        try:
            data = await self._blobs.get(name)
        except OSError as error:
            raise PayloadUnreadableError(f"Blob {name} cannot be read ({error}). Mend the store.") from error
        if data is None:
            raise PayloadUnreadableError(
                f"Blob {name} is missing in the store that CASEWORK_BLOBS names. Is that the one of the other "
                "processes? If it was deleted, bring back a copy; the run goes on when it is there."
            )
        return data

    def _key(self, key_id: str) -> Key:
        if self._keys is None:
            raise PayloadUnreadableError(
                f"A value of a history is encrypted with key {key_id!r}, and this process has no keys. Set {SETTING} "
                "to the key file that the other processes have; nothing is lost."
            )
        return self._keys.reading(key_id)


def _unpacked(data: bytes, size: int) -> bytes:
    """No more than was packed, whatever is in there."""
    try:
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise PayloadUnreadableError("A blob does not unpack: it was changed. Bring back a copy of it.") from error


def _parsed(raw: bytes) -> Payload:
    made = Payload()
    try:
        made.ParseFromString(raw)
    except DecodeError as error:
        raise PayloadUnreadableError("A value of a history does not parse: it was changed.") from error
    return made
