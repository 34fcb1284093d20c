"""Segments whose worker is killed, and those that are told to end."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from temporalio.testing import ActivityEnvironment

from casework.agents.tools import ToolContext, tool
from casework.app import App
from casework.durable import contracts
from casework.durable.activities.segment import SegmentActivity
from casework.durable.publish import publish
from casework.durable.segment_contracts import Segment
from casework.errors import RetryableError
from casework.graph import engine
from casework.graph.bundle import PinnedWorkflow
from casework.store.database import Database
from casework.store.rows import RunRow
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.test_segments import activities, started, started_plain
from tests.integration.durable.worker_processes import killed_when

Begin = Callable[[House, int], Awaitable[UUID]]
APP = "tests.integration.durable.killed_chain_app:app"


async def test_a_killed_workers_segment_goes_on_at_the_first_row_that_is_missing(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AW-11, DA-26. SIGKILL in the middle of a segment: no tool whose result is committed is called again.

    The one that was under way is called once more, alone, as the second attempt of its own policy.
    """
    monkeypatch.setenv("CASEWORK_TEST_FOLDER", str(tmp_path))
    chain = importlib.import_module("tests.integration.durable.killed_chain_app")
    here = replace(house, app=chain.app)
    await publish(here.app, here.db)
    run_id = await started(here, 5)
    await killed_when(chain.HANGS.exists, "the third call hangs", here, APP, tmp_path)
    before = {step.path: step.state for step in await here.steps(run_id)}
    assert before.pop("second.3") == "STARTED"
    assert set(before.values()) == {"COMPLETED"}
    async with here.worker():
        row = await here.reaches(run_id, "COMPLETED")
    assert row.loop_count == 16
    assert Counter(chain.CALLS.read_text().split()) == {"first": 5, "second": 6}
    steps = {step.path: (step.state, step.attempt) for step in await here.steps(run_id)}
    assert steps.pop("second.3") == ("COMPLETED", 2)
    assert set(steps.values()) == {("COMPLETED", 1)}
    kinds = [kind for kind in await activities(here, run_id) if kind != contracts.PROJECT]
    assert kinds == [contracts.RUN_SEGMENT, contracts.CALL_TOOL, contracts.RUN_SEGMENT]
    told = [(each.path, each.kind) for each in await here.events(run_id)]
    assert len(told) == len(set(told))
    assert ("second.3", "attempt_lost:1") in told
    assert not [kind for _, kind in told if kind.startswith("run_stale")]


async def test_a_cancelled_run_stops_behind_what_its_segment_has_done(house: House, tmp_path: Path) -> None:
    """AW-11, DA-16. What is committed stays and is counted; the tool under way is given up."""
    called, go = threading.Event(), threading.Event()

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 2:
            called.set()
            go.wait(30)

    async with house.with_app(loop_app(tmp_path, act)) as busy:
        run_id = await started(busy, 5)
        await asyncio.to_thread(called.wait, 30)
        await busy.runs.cancel(str(run_id), contracts.CancelRequest("ann", "enough"))
        row = await busy.reaches(run_id, "CANCELLED")
        go.set()
        assert (row.current_node, row.loop_count) == ("second", 6)
        steps = {step.path: step.state for step in await busy.steps(run_id)}
        assert steps == {"first.1": "COMPLETED", "second.1": "COMPLETED", "first.2": "COMPLETED", "second.2": "FAILED"}
        told = [(each.path, each.kind) for each in await busy.events(run_id)]
        assert ("second.2", "agent.node_terminated") in told
        assert ("", "agent.run_cancelled") in told


@pytest.mark.parametrize("begin", [started, started_plain])
async def test_a_cancel_before_the_end_is_heard_of_counts(house: House, tmp_path: Path, begin: Begin) -> None:
    """DA-16, DA-19. The last tool has acted and its row is being written: the run is CANCELLED, in a segment or alone,
    and the row stays."""
    lock = Lock(house.dsn)

    def act(name: str, calls: int) -> None:
        if (name, calls) == ("second", 2):
            lock.take()

    async with house.with_app(loop_app(tmp_path, act)) as busy:
        run_id = await begin(busy, 2)
        await eventually(lambda: waits_for_a_lock(house), "the last row is being written", 30)
        await busy.runs.cancel(str(run_id), contracts.CancelRequest("ann", "enough"))
        lock.release()
        row = await busy.reaches(run_id, "CANCELLED")
        assert row.failure == "cancelled by ann: enough"
        steps = {step.path: (step.state, step.attempt) for step in await busy.steps(run_id)}
        assert steps == dict.fromkeys(("first.1", "second.1", "first.2", "second.2"), ("COMPLETED", 1))
        told = [(each.path, each.kind) for each in await busy.events(run_id)]
        assert ("second.2", "agent.tool_completed") in told
        assert told[-2:] == [("", "agent.run_cancel_requested"), ("", "agent.run_cancelled")]


TRANSFER = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: transfer}
spec:
  initialNode: take
  nodes:
    - {id: take, type: TOOL, tool: book, arguments: {amount: -5}, outputKey: taken}
    - {id: give, type: TOOL, tool: book, arguments: {amount: 5}, outputKey: given}
  edges: [{from: take, to: give}]
"""


async def test_a_transactional_tool_commits_its_effect_with_its_row_and_the_next_claim(
    house: House, tmp_path: Path
) -> None:
    """AW-11, DA-27. An effect that fails leaves nothing, and its repeat is made alone."""
    failed: list[str] = []

    @tool(repeat="transactional")
    async def book(ctx: ToolContext, amount: int) -> int:
        """Book an amount."""
        await ctx.connection.execute(
            "insert into public.casework_test_books (path, amount) values (%s, %s)", (ctx.path, amount)
        )
        if amount > 0 and not failed:
            failed.append(ctx.path)
            raise RetryableError("the second booking broke")
        return amount

    manifest = tmp_path / "transfer.yaml"
    manifest.write_text(TRANSFER)
    await prepared(house)
    async with house.with_app(App(tools=[book], manifests=[manifest])) as busy:
        run_id = await busy.start({}, "transfer")
        await busy.reaches(run_id, "COMPLETED")
        assert await booked(busy) == [("give.1", 5), ("take.1", -5)]
        assert [step.attempt for step in await busy.steps(run_id)] == [1, 2]
        kinds = [kind for kind in await activities(busy, run_id) if kind != contracts.PROJECT]
        assert kinds == [contracts.RUN_SEGMENT, contracts.CALL_TOOL]


async def test_a_visit_whose_write_is_cut_is_not_reported(house: House, tmp_path: Path) -> None:
    """DA-16, DA-27. A worker stops while the link of a transactional tool waits for a row: effect and row are rolled
    back together, and the run is not told of a visit that never happened."""
    holder: list[psycopg.AsyncConnection[Any]] = []

    @tool(repeat="transactional")
    async def book(ctx: ToolContext, amount: int) -> int:
        """Book an amount, while somebody writes what the link is to write behind it."""
        await ctx.connection.execute(
            "insert into public.casework_test_books (path, amount) values (%s, %s)", (ctx.path, amount)
        )
        holder.append(await psycopg.AsyncConnection.connect(house.dsn))
        await holder[0].execute(
            "insert into agent_ops.agent_run_metrics (tenant, run_id) values (%s, %s)", (ctx.tenant, ctx.run_id)
        )
        return amount

    manifest = tmp_path / "transfer.yaml"
    manifest.write_text(TRANSFER)
    await prepared(house)
    here = replace(house, app=App(tools=[book], manifests=[manifest]))
    await publish(here.app, here.db)
    row = await here.accept({}, "transfer")
    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(SegmentActivity(here.services()).run_segment, asked(here, row)))
    try:
        await eventually(lambda: waits_for_a_lock(house), "the link waits for a row", 30)
        assert not running.done()
        environment.cancel()
        reply = await running
    finally:
        await holder[0].close()
    assert reply.visits == ()
    async with house.db.transaction() as conn:
        found = await (await conn.execute("select count(*) from public.casework_test_books")).fetchone()
    assert found == (0,)
    assert {step.path: step.state for step in await here.steps(row.run_id)} == {"take.1": "STARTED"}


def asked(house: House, row: RunRow) -> Segment:
    """The first segment of a run, as the run would ask for it."""
    bundle = house.app.bundles()[row.workflow_name]
    assert isinstance(bundle, PinnedWorkflow)
    state, _ = engine.start(bundle.workflow.spec, row.request)
    return Segment(
        owner=contracts.Owner(row.tenant, str(row.run_id)),
        path=f"{state.current_node}.1",
        workflow=row.workflow_name,
        workflow_version=row.workflow_version,
        state=state.to_plain(),
        version=0,
        quick=bundle.quick,
        most_visits=10,
        most_bytes=10_000,
        most_ms=60_000,
    )


async def waits_for_a_lock(house: House) -> bool:
    query = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with await psycopg.AsyncConnection.connect(house.dsn) as owner:
        found = await (await owner.execute(query)).fetchone()
    return found is not None and found[0] > 0


async def prepared(house: House) -> None:
    """A table of the tool's own."""
    async with await Database.open(house.dsn, role=None) as owner, owner.transaction() as conn:
        await conn.execute("create table public.casework_test_books (path text, amount integer)")
        await conn.execute("grant select, insert on public.casework_test_books to casework_runtime")


async def booked(house: House) -> list[tuple[str, int]]:
    """What is in it."""

    async def look() -> list[tuple[str, int]]:
        async with house.db.transaction() as conn:
            cursor = await conn.execute("select path, amount from public.casework_test_books order by path")
            return await cursor.fetchall()

    return await eventually(look, "something is booked", 5)


class Lock:
    """A hold on a run's row, from a thread of a tool: of the only one that is there."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.release: Callable[[], None] = lambda: None

    def take(self) -> None:
        """Until `release`."""
        conn = psycopg.connect(self._dsn)
        conn.execute("select from agent_ops.agent_runs for update")
        self.release = conn.close
