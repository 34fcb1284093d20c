"""Counts what a worker asks of the database, by the step that asks."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from casework.store.connection import BoundedConnection

ELSEWHERE = "elsewhere"


@dataclass
class Asked:
    """Of one step: waits for an answer of the server, and milliseconds in them."""

    round_trips: int = 0
    ms: float = 0.0


@contextmanager
def round_trips() -> Iterator[dict[str, Asked]]:
    """What is asked while the block lasts, by path of the step; the driver waits once for each answer."""
    found: dict[str, Asked] = defaultdict(Asked)
    theirs = BoundedConnection.wait

    async def wait(self: BoundedConnection, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return await theirs(self, *args, **kwargs)
        finally:
            asked = found[activity.info().activity_id if activity.in_activity() else ELSEWHERE]
            asked.round_trips += 1
            asked.ms += (time.perf_counter() - began) * 1000

    BoundedConnection.wait = wait  # type: ignore[method-assign]  # a measuring stand-in, taken away below
    try:
        yield found
    finally:
        BoundedConnection.wait = theirs  # type: ignore[method-assign]
