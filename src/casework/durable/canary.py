"""Whether this process can read what the others write: a word that each worker of a task queue leaves, and reads.
And whether it can keep large values at all, which worker and API ask before they begin.

It lies in the schedule of the sweep, which every worker looks at when it starts, and is kept as a large value would be.
A worker that lacks the keys or the blobs of the others so fails at its start, and not in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from temporalio.api.common.v1 import Payload
from temporalio.client import Client, ScheduleActionStartWorkflow

from casework.durable.in_hand import PATIENCE
from casework.durable.payloads import Payloads
from casework.errors import PayloadUnreadableError, SettingsError

MEMO = "casework-payloads"
"""Under which name it lies in the memo of the sweep's workflow."""
OWNER = "casework-canary"
"""Whose blob it is: nobody's that ends."""


async def left(client: Client) -> dict[str, Payload]:
    """The memo for the schedule, written as this process writes.

    Raises:
        SettingsError: its blob cannot be kept.
    """
    try:
        word = Payload(metadata={"encoding": b"json/plain"}, data=f'"readable {uuid4()}"'.encode())
        return {MEMO: await _codec(client).as_if_large(word)}
    except PayloadUnreadableError as error:
        raise SettingsError(str(error), field="CASEWORK_BLOBS") from error


async def try_store(client: Client) -> None:
    """Keep a word as a large value is kept, and read it, where this process has a store: one word, however often.

    Raises:
        SettingsError: the store cannot be written or read.
    """
    codec = _codec(client)
    if codec.blobs is None:
        return
    try:
        word = Payload(metadata={"encoding": b"json/plain"}, data=b'"kept"')
        await codec.decode([await codec.as_if_large(word)])
    except PayloadUnreadableError as error:
        raise SettingsError(str(error), field="CASEWORK_BLOBS") from error


async def require(client: Client, schedule_id: str) -> None:
    """Read the word in that schedule, where there is one.

    Raises:
        SettingsError: it cannot be read here.
        RPCError: the engine does not say.
    """
    action = (await client.get_schedule_handle(schedule_id).describe(rpc_timeout=PATIENCE)).schedule.action
    await check(client, action.memo if isinstance(action, ScheduleActionStartWorkflow) else None)


async def check(client: Client, memo: Mapping[str, Any] | None) -> bool:
    """Read the word of another worker; False where there is none, or one that is kept in another way than ours.

    Raises:
        SettingsError: it cannot be read here.
    """
    found = (memo or {}).get(MEMO)
    if not isinstance(found, Payload):
        return False
    try:
        await _codec(client).decode([found])
    except PayloadUnreadableError as error:
        raise SettingsError(
            f"This process cannot read what the workers of its task queue write. {error}",
            field="CASEWORK_PAYLOAD_KEYS and CASEWORK_BLOBS",
        ) from error
    return _codec(client).keeps_as(found)


def _codec(client: Client) -> Payloads:
    codec = client.data_converter.payload_codec
    return codec.of(OWNER) if isinstance(codec, Payloads) else Payloads()
