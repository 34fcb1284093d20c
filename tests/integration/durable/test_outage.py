"""The database goes away in mid-run and comes back: no attempt is lost by it, no result, no run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client

from casework.agents import Repeat, ToolContext, tool
from casework.errors import StoreUnavailableError
from casework.settings import Settings, TemporalSettings
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.store.migrate import migrate
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import House


async def test_a_run_goes_on_after_the_database_was_away(
    tmp_path: Path, temporal_client: Client, temporal_address: str
) -> None:
    """DA-18. The database stops while a tool acts: its result is held and written later; what had not begun waits.

    Neither costs an attempt: nothing that the run did was done twice.
    """
    server = LocalPostgres(tmp_path / "data")
    calls: list[int] = []
    acting, go_on = threading.Event(), threading.Event()

    @tool(repeat=Repeat.KEYED)
    async def look(ctx: ToolContext) -> str:
        """Look."""
        calls.append(ctx.attempt)
        acting.set()
        await asyncio.to_thread(go_on.wait)
        return "found"

    @tool(repeat=Repeat.KEYED)
    async def listen(ctx: ToolContext) -> str:
        """Listen."""
        calls.append(ctx.attempt)
        return "heard"

    app = errand(tmp_path, [look, listen], asking([("look", {})], [("listen", {})]))
    dsn = server.start()
    try:
        await migrate(dsn)
        temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
        async with await Database.open(dsn, wait_s=1) as db:
            house = House(dsn, db, temporal_client, Settings(temporal=temporal))
            async with house.with_app(app) as busy:
                run_id = await busy.start({}, "errand")
                await asyncio.to_thread(acting.wait)
                server.stop()
                go_on.set()
                with pytest.raises(StoreUnavailableError):  # and so has the tool's worker found it, which waited before
                    await busy.run(run_id)
                server.start()
                row = await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
                assert "found" in row.recommendation
                assert "heard" in row.recommendation
                assert {step.attempt for step in await busy.steps(run_id)} == {1}
                assert calls == [1, 1]
    finally:
        server.stop()


async def test_a_step_that_finds_no_database_waits_for_it(
    tmp_path: Path, temporal_client: Client, temporal_address: str
) -> None:
    """DA-18. A claim that cannot be made uses no attempt, however often it is tried."""
    server = LocalPostgres(tmp_path / "data")

    @tool(repeat=Repeat.KEYED)
    async def look(ctx: ToolContext) -> str:
        """Look."""
        return f"found at attempt {ctx.attempt}"

    dsn = server.start()
    try:
        await migrate(dsn)
        temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
        async with await Database.open(dsn, wait_s=1) as db:
            house = House(
                dsn, db, temporal_client, Settings(temporal=temporal), errand(tmp_path, [look], asking([("look", {})]))
            )
            await house.open()
            run_id = await house.start({}, "errand")
            server.stop()
            async with house.worker():
                handle = temporal_client.get_workflow_handle(str(run_id))
                history = await handle.fetch_history()
                while not any(event.HasField("timer_started_event_attributes") for event in history.events):
                    await asyncio.sleep(0.1)
                    history = await handle.fetch_history()
                server.start()
                row = await house.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
            assert "found at attempt 1" in row.recommendation
            assert {step.attempt for step in await house.steps(run_id)} == {1}
    finally:
        server.stop()
