"""Heartbeats: the engine bills each that reaches it, so a step that is over at once sends none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from temporalio.testing import ActivityEnvironment

from casework.durable.activities.operation import operation


def environment(timeout: float) -> tuple[ActivityEnvironment, asyncio.Event]:
    """Where an activity runs by itself with this heartbeat time-out in seconds; the event tells of a heartbeat."""
    made, beaten = ActivityEnvironment(), asyncio.Event()
    made.info = replace(made.info, heartbeat_timeout=timedelta(seconds=timeout))
    made.on_heartbeat = lambda *_: beaten.set()
    return made, beaten


async def test_a_step_that_is_over_at_once_sends_no_heartbeat() -> None:
    """DA-50. An attempt's time-out counts from its start, so the first heartbeat is due only after a part of it."""
    made, beaten = environment(2)

    @operation
    async def short() -> None:
        await asyncio.sleep(0)

    await made.run(short)

    assert not beaten.is_set()


async def test_a_step_that_lasts_sends_heartbeats() -> None:
    """DA-18. Every activity that can last heartbeats."""
    made, beaten = environment(0.02)

    @operation
    async def lasting() -> None:
        async with asyncio.timeout(30):
            for _ in range(2):
                await beaten.wait()
                beaten.clear()

    await made.run(lasting)
