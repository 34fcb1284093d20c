"""Kinds of trays that wait for runs and people, and of the runs that they start. `kinds` keeps them with the others."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from temporalio.client import WorkflowFailureError

from casework.process import ErrorPolicy
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.waiting_app import BY_PERSON, PARTED, app


async def a_tray_that_waits(house: House, _: Path) -> str:
    """Children wait side by side, each for a run and then for a person; the run of one fails, twice."""
    async with house.with_app(app(PARTED, errors=ErrorPolicy(retries=1))) as busy:
        desk = Desk(busy)
        uuid = await desk.add({"numbers": [1, -2, 3]})
        tray = await desk.tray(uuid, "processing")
        children = await eventually(lambda: desk.children(uuid), "the Transaction is parted")
        for child in (children[0], children[2]):
            await busy.decide((await desk.waiting(child.uuid)).run_id, "yes")
        await tray.result()
    return tray.id


async def a_tray_cancelled_while_it_waits(house: House, _: Path) -> str:
    """The tray is cancelled, and the question with it."""
    async with house.with_app(app(BY_PERSON)) as busy:
        desk = Desk(busy)
        uuid = await desk.add({"n": 5})
        tray = await desk.tray(uuid, "processing")
        await desk.waiting(uuid)
        await tray.cancel()
        with pytest.raises(WorkflowFailureError):
            await tray.result()
        await desk.waiting(uuid, "CANCELLED")
    return tray.id


async def asked_for_a_tray(house: House, _: Path) -> UUID:
    """The run of a manual task."""
    async with house.with_app(app(BY_PERSON)) as busy:
        desk = Desk(busy)
        uuid = await desk.add({"n": 5})
        tray = await desk.tray(uuid, "processing")
        run = await desk.waiting(uuid)
        await busy.decide(run.run_id, "no", "too late")
        await tray.result()
    return run.run_id


ALL = (a_tray_that_waits, a_tray_cancelled_while_it_waits, asked_for_a_tray)
