"""Parents that wait at a join for children in other trays: they are seen, keep nobody out, and may give up."""

from __future__ import annotations

from datetime import timedelta

from casework.process import BusinessProcess, Finalizer, TransactionMonitorTask, bot_task
from casework.store.processes import claims, waiting_parents
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import Join, Split, process

DONE = "PROCESSING_COMPLETED"


class Early(TransactionMonitorTask):
    status_to_monitor, status_to_set = "INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS"


class Late(TransactionMonitorTask):
    status_to_monitor, status_to_set = DONE, "SUBMISSION_IN_PROGRESS"


CUT = process(Split, name="cut", monitor=Early, finalizer=Finalizer("PROCESSING_IN_PROGRESS", DONE))


def put(join: type[Join]) -> BusinessProcess:
    return process(join, name="put", monitor=Late, finalizer=Finalizer("SUBMISSION_IN_PROGRESS", "COMPLETED"))


async def open_trays(here: Yard) -> int:
    async with here.house.db.transaction() as conn:
        return await claims.open_trays(conn, TENANT, "put")


async def test_a_tray_that_waits_is_seen_and_keeps_nobody_out(house: House) -> None:
    """BP-8, BP-32. A parent that waits says since when and where, and its tray does not count against `max_trays`: with
    one tray at a time its own children could never come."""
    async with yard(house, project(CUT, put(Join))) as here:
        parent = await here.add({"parts": ["x", "y"]})
        await here.walk("cut")
        waits = await here.start(await here.claimed("put", most=1))

        async def seen() -> waiting_parents.Wait | None:
            async with house.db.transaction() as conn:
                return await waiting_parents.of(conn, TENANT, parent)

        found = await eventually(seen, "the parent waits")
        assert (found.process, found.task, found.claim_id) == ("put", "join", (await here.get(parent)).claim_id)
        assert await open_trays(here) == 0
        for _ in range(2):
            assert (await here.walk("put", most=1)).left == 0
        await waits.result()
        assert (await here.get(parent)).data["joined"] == ["x", "y"]
        assert await seen() is None
        async with house.db.transaction() as conn:
            count = await waiting_parents.of_process(conn, TENANT, "put")
        assert (count.transactions, count.since) == (0, None)


@bot_task("join")
class Hasty(Join):
    """Waits for no time at all."""

    longest_wait = timedelta(microseconds=1)


async def test_a_parent_waits_no_longer_than_its_join_says(house: House) -> None:
    """BP-8. A child that never comes does not keep its parent for ever: it fails, and says how many are missing."""
    async with yard(house, project(CUT, put(Hasty))) as here:
        parent = await here.add({"parts": ["x", "y"]})
        await here.walk("cut")
        await (await here.start(await here.claimed("put", most=1))).result()
        assert (await here.get(parent)).status == "HAS_ERROR"
        (error,) = await here.errors(parent)
        assert error.code == "CHILDREN_MISSING"
        assert "2 of 2 children have not come" in error.full
