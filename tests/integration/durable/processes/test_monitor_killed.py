"""Workers are killed, by SIGKILL, in the middle of polls: the repeated poll goes on with what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes import killed_monitor_app as killed
from tests.integration.durable.processes.post import add, furnished, polled, processes, sql
from tests.integration.durable.worker_processes import killed_when

APP = "tests.integration.durable.processes.killed_monitor_app:app"
STATUSES = "select status from process_ops.transactions"


async def killed_in(house: House, process: str, folder: Path) -> None:
    """Start the process, and kill its worker where that stops."""
    mark = folder / "here"
    await processes(house).start(TENANT, process, "ann")
    await killed_when(mark.exists, f"{process} has come to it", house, APP, folder, **{killed.STOPS: str(mark)})


async def through(house: House, status: str, count: int) -> None:
    """Until so many Transactions, and no others, are in the status."""

    async def look() -> bool:
        return await sql(house, STATUSES) == [status] * count

    await eventually(look, f"{count} are {status}", 60)


@pytest.mark.timeout(150)
async def test_killed_between_claim_and_start(house: House, tmp_path: Path) -> None:
    """BP-18, BP-10: the rows bear their claims and no tray was started; the repeated poll starts them."""
    await add(house, 5)
    await killed_in(house, "processing", tmp_path)
    assert await sql(house, STATUSES) == ["PROCESSING_IN_PROGRESS"] * 5
    claims = "select claim_id from process_ops.transaction_claims order by 1"
    before = await sql(house, claims)
    await add(house, 1)  # for the repeated poll, which claims at least one
    async with house.with_app(killed.app) as there:
        await through(there, "PROCESSING_COMPLETED", 6)
        await polled(there, 1, "processing")
    assert len(before) == 3
    assert set(before) < set(await sql(house, claims))


@pytest.mark.timeout(150)
async def test_killed_while_an_entity_is_saved(house: House, tmp_path: Path) -> None:
    """BP-20: entity and Transaction are kept together or not at all; those kept before get their tray."""
    await furnished(house)
    await killed_in(house, "intake", tmp_path)
    assert await sql(house, "select name from public.letters order by 1") == killed.MAILS[:2]
    assert await sql(house, "select natural_key from process_ops.transactions order by 1") == killed.MAILS[:2]
    async with house.with_app(killed.app) as there:
        await through(there, "INTAKE_COMPLETED", 5)
        [round_] = await polled(there)
    assert (round_.taken_in, round_.repeated) == (3, 2)
    together = "select l.name from public.letters l join process_ops.transactions t using (uuid) order by 1"
    assert await sql(house, together) == killed.MAILS
