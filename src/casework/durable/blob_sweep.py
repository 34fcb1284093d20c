"""Blobs go when the histories that name them have gone: each worker looks from time to time.

A blob belongs to a Temporal workflow, and the engine keeps its histories until its retention has passed after the end.
While the engine knows the workflow, in whatever part or state, its blobs stay; no period of our own is set.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from casework.durable.beside import beside
from casework.durable.blobs import UNOWNED, Blobs
from casework.durable.canary import OWNER
from casework.durable.client import CALL_TIMEOUT
from casework.durable.payloads import Payloads

EVERY_S = 3600.0
MARGIN_S = 24 * 3600.0
"""An owner that has put anything for so long is not looked at: what is written first may start a day later."""
AT_ONCE = 1000
"""Owners that one look asks the engine about, in random order."""
KEPT = {UNOWNED, OWNER}

log = logging.getLogger("casework.blobs")


@asynccontextmanager
async def kept_blobs(client: Client, every_s: float = EVERY_S) -> AsyncIterator[None]:
    """From now on blobs whose histories have gone are removed, where this process has a store."""
    codec = client.data_converter.payload_codec
    blobs = codec.blobs if isinstance(codec, Payloads) else None
    if blobs is None:
        yield
        return
    async with beside(_keep(client, blobs, every_s)):
        yield


async def _keep(client: Client, blobs: Blobs, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s * random.uniform(0.5, 1.5))  # noqa: S311  # so that workers do not look together
        try:
            removed = await remove_gone(client, blobs)
        except Exception as error:  # noqa: BLE001  # a worker does not end because a look failed
            log.warning("blobs could not be looked through: %s", error)
        else:
            if removed:
                log.info("blobs of %d workflows were removed: their histories have gone", removed)


async def remove_gone(client: Client, blobs: Blobs, margin_s: float = MARGIN_S) -> int:
    """Remove the blobs of workflows that the engine no longer has; of how many that were.

    Raises:
        RPCError: the engine does not answer.
        OSError: the store does not.
    """
    owners = [owner for owner in await blobs.owners(margin_s) if owner not in KEPT]
    removed = 0
    for owner in random.sample(owners, min(len(owners), AT_ONCE)):
        if not owner.startswith("~") and await _gone(client, owner):
            await blobs.remove(owner)
            removed += 1
    return removed


async def _gone(client: Client, workflow_id: str) -> bool:
    try:
        await client.get_workflow_handle(workflow_id).describe(rpc_timeout=CALL_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return True
        raise
    except ValueError:  # a status that the SDK does not know: it is there
        return False
    return False
