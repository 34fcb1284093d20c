"""Work that a worker does beside its own, for as long as it works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` until the block is left; then it is cancelled, and has ended."""
    doing = asyncio.create_task(work)
    try:
        yield
    finally:
        doing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing
