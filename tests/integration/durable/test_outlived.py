"""An attempt that is still alive when the next one begins: it acts no more, loses no result and holds nobody up."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from casework.agents import Happened, Repeat, ToolContext, tool
from casework.durable.activities import tool as tool_activity
from casework.durable.activities.tool import ToolActivity
from casework.errors import StoreUnavailableError
from casework.store.connection import IDLE_IN_TRANSACTION_S
from casework.store.runlock import lock_run
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.test_steps import DEADLINE_S, Setting, bench, call_of

__all__ = ["bench"]


WAITING = """
select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""


async def waits_for_a_lock(house: House) -> bool:
    """Whether a session of this database waits for a row."""
    async with house.db.transaction() as conn:
        await conn.execute("set local role none")  # only the login sees what its other sessions wait for
        row = await (await conn.execute(WAITING)).fetchone()
    return row is not None and row[0] > 0


async def test_an_attempt_that_was_overtaken_does_not_act(bench: Setting, tmp_path: Path) -> None:
    """DA-26, DA-27. The second attempt has asked and is slow to act; a third begins: the second acts no more."""
    sent: list[int] = []
    asked, go_on = threading.Event(), threading.Event()

    def look(ctx: ToolContext) -> Happened | None:
        found = Happened("found") if sent else None
        if ctx.attempt == 2:
            asked.set()
            assert go_on.wait(DEADLINE_S)
        return found

    @tool(repeat=Repeat.VERIFY, verify=look)
    def act_once(ctx: ToolContext) -> str:
        """Act."""
        sent.append(ctx.attempt)
        return f"attempt {ctx.attempt}"

    on = await bench(errand(tmp_path, [act_once], asking()))
    await on.lose_an_attempt()
    slow = asyncio.create_task(on.call())
    assert await asyncio.to_thread(asked.wait, DEADLINE_S)
    assert (await on.call()).result == "attempt 3"
    go_on.set()
    with pytest.raises(ApplicationError, match="no longer the current one"):
        await slow
    assert sent == [3]
    assert {each.attempt: each.outcome for each in await on.attempts()} == {1: "LOST", 2: "LATE", 3: "COMPLETED"}


async def test_a_finished_act_is_written_although_its_activity_is_cancelled(bench: Setting, tmp_path: Path) -> None:
    """DA-24. The engine gives up on an attempt while its result is being written: the result is in the ledger."""
    acting, go_on = threading.Event(), threading.Event()

    @tool(repeat=Repeat.KEYED)
    def act_once(ctx: ToolContext) -> str:
        """Act."""
        acting.set()
        assert go_on.wait(DEADLINE_S)
        return "done"

    on = await bench(errand(tmp_path, [act_once], asking()))
    setting = ActivityEnvironment()
    call = asyncio.create_task(setting.run(ToolActivity(on.house.services()).call_tool, call_of(on.run_id)))
    assert await asyncio.to_thread(acting.wait, DEADLINE_S)
    async with on.house.db.transaction() as conn:
        await lock_run(conn, TENANT, on.run_id)
        go_on.set()
        await eventually(lambda: waits_for_a_lock(on.house), "the commit waits for the run's row")
        setting.cancel()
        await asyncio.sleep(0)  # the cancellation reaches the activity in its commit
    with pytest.raises(asyncio.CancelledError):
        await call
    [step] = await on.house.steps(on.run_id)
    assert (step.state, step.result) == ("COMPLETED", "done")


async def test_a_frozen_transaction_holds_up_nobody_for_long(bench: Setting, tmp_path: Path) -> None:
    """DA-26. A worker that froze in an open transaction loses it to the server; the next attempt waits no longer."""

    @tool(repeat=Repeat.KEYED)
    def act_once(ctx: ToolContext) -> str:
        """Act."""
        return "done"

    on = await bench(errand(tmp_path, [act_once], asking()))
    began = time.monotonic()

    async def freeze() -> None:
        async with on.house.db.transaction() as frozen:
            await lock_run(frozen, TENANT, on.run_id)
            assert (await on.call()).result == "done"

    with pytest.raises(StoreUnavailableError):
        await freeze()
    assert time.monotonic() - began < 2 * IDLE_IN_TRANSACTION_S
    assert [each.outcome for each in await on.attempts()] == ["COMPLETED"]


async def test_an_attempt_that_was_held_up_asks_before_it_acts(
    bench: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-26. A worker stands still between its claim and its act, and is overtaken there: it does not act at all."""
    sent: list[int] = []

    @tool(repeat=Repeat.IDEMPOTENT)
    def act_once(ctx: ToolContext) -> str:
        """Act."""
        sent.append(ctx.attempt)
        return "done"

    on = await bench(errand(tmp_path, [act_once], asking()))

    class HeldUp(ToolActivity):
        """Another attempt begins before this one gets to see the answer to its claim."""

        async def _claim(self, call: Any, tool: Any) -> Any:
            claimed = await super()._claim(call, tool)
            await on.lose_an_attempt()
            return claimed

    monkeypatch.setattr(tool_activity, "HELD_UP_MS", 0)
    with pytest.raises(ApplicationError, match="no longer the current one"):
        await ActivityEnvironment().run(HeldUp(on.house.services()).call_tool, call_of(on.run_id))
    assert not sent
