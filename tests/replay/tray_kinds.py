"""Kinds of trays whose histories are kept. `kinds` keeps them with the others."""

from __future__ import annotations

from pathlib import Path

from casework.durable.trays import tray_id
from casework.errors import BusinessError
from casework.process import Change, ErrorPolicy, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.lines import LOOP_RULE, Rule
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.parts import early
from tests.integration.durable.processes.test_tray_families import Early, Late
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import Join, Split, plain, process


@bot_task("odd", errors=ErrorPolicy(retries=1, siblings=True))
class Odd(TransactionalTask):
    """Fails `once` the first time, `always` each time, and refuses the part "bad"."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if transaction.data.get("part") == "bad":
            raise BusinessError("the part is bad")
        if transaction.data.get("always") or (transaction.data.get("once") and ctx.attempt == 1):
            raise RuntimeError("not now")
        return Change(data={"tries": transaction.data.get("tries", 0) + 1})


async def _walked(here: Yard, process_name: str = "processing") -> str:
    start = await here.claimed(process_name)
    await (await here.start(start)).result()
    return tray_id(start.claim_id)


async def a_tray(house: House, _: Path) -> str:
    """Some come through, by Rules that lead back too; one is tried again, one fails, one is to resume."""
    rules = (LOOP_RULE, Rule("odd", "data.tries < 2", "odd"))
    async with yard(house, project(process(plain("a"), Odd, plain("c"), rules=rules, tray_size=9))) as here:
        for data in ({}, {"once": True}, {"always": True}):
            await here.add(data)
        await here.add(skip_until="c")
        await here.add(skip_until="gone")
        return await _walked(here)


async def a_tray_that_looks_ahead(house: House, _: Path) -> str:
    """Three tasks and the Finalizer in one activity; the last of them fails one, and is asked for the others."""
    async with yard(house, project(process(plain("a"), plain("b"), Odd, tray_size=9))) as here:
        for data in ({}, {"always": True}):
            await here.add(data)
        return await _walked(here)


async def a_tray_with_families(house: House, _: Path) -> str:
    """Splits and joins, and a failed child that takes its siblings along."""
    async with yard(house, project(process(Split, Odd, Join, plain("last"), tray_size=2))) as here:
        await here.add({"parts": ["x", "y"]})
        await here.add({"parts": ["x", "bad"]})
        return await _walked(here)


async def a_tray_that_waits_at_a_join(house: House, _: Path) -> str:
    """A parent that waits for a child in another tray."""
    cut = process(Split, name="cut", monitor=Early)
    put = process(Join, name="put", monitor=Late, finalizer=None)
    async with yard(house, project(cut, put)) as here:
        await here.add({"parts": ["x"]})
        await _walked(here, "cut")
        start = await here.claimed("put", most=1)
        handle = await here.start(start)

        async def looked() -> bool:
            events = (await handle.fetch_history()).events
            return any(event.HasField("timer_fired_event_attributes") for event in events)

        await eventually(looked, "the parent waits")
        await _walked(here, "put")
        await handle.result()
        return tray_id(start.claim_id)


async def a_tray_rolled_over(house: House, _: Path) -> str:
    """The last part is the one that is kept under this name."""
    tasks = [plain(f"t{number}") for number in range(8)]
    async with yard(early(house, 20), project(process(Split, *tasks, Join))) as here:
        await here.add({"parts": ["x", "y"]})
        return await _walked(here)


async def a_tray_with_a_limit(house: House, _: Path) -> str:
    """A task with a limit works on each in its own queue; one fails, and is tried again."""

    @bot_task("odd", max_per_second=100, errors=ErrorPolicy(retries=1))
    class Limited(Odd):
        pass

    async with yard(house, project(process(plain("a"), Limited, tray_size=9))) as here:
        for data in ({}, {"once": True}, {"always": True}):
            await here.add(data)
        return await _walked(here)


ALL = (
    a_tray,
    a_tray_that_looks_ahead,
    a_tray_with_families,
    a_tray_that_waits_at_a_join,
    a_tray_rolled_over,
    a_tray_with_a_limit,
)
