"""Real faults of the database: a run waits, uses no attempt, says so, and goes on when the fault is taken away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from temporalio.api.enums.v1 import EventType

from casework.agents import Repeat, ToolContext, tool
from casework.durable import policies
from casework.durable.activities import services
from casework.durable.contracts import RunStart
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import House, eventually
from tests.integration.operator import faulty
from tests.integration.operator.conftest import Site

LOOK: list[tuple[str, dict[str, object]]] = [("look", {})]
Fault = Callable[[Site, UUID], AbstractAsyncContextManager[None]]


class Looks:
    """A tool that writes down at which attempts it acted, and acts when it may."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.may = threading.Event()

        @tool(repeat=Repeat.KEYED)
        def look(ctx: ToolContext) -> str:
            """Look."""
            self.calls.append(ctx.attempt)
            self.may.wait(60)
            return "found"

        self.tool = look


async def begin(house: House, run_id: UUID) -> None:
    """Start a run whose row is there already, without asking the database."""
    pinned = house.app.workflow("errand")
    await house.runs.start(RunStart(str(run_id), "default", "ann", {}, pinned.to_plain(), 1))


async def waits_told(house: House, run_id: UUID) -> list[str]:
    """What the database said at each wait, as the run's events tell afterwards."""

    async def look() -> list[str]:
        return [event.data["error"] for event in await house.events(run_id) if event.kind == "agent.store_unavailable"]

    return await eventually(look, "the wait is told")


@pytest.mark.parametrize(
    ("fault", "says", "database", "readable"),
    [
        (faulty.refusing_writes, "read-only", "refuses writes", True),
        (faulty.without_a_right, "agent_step_attempts", "INSERT on agent_ops.agent_step_attempts", True),
        (faulty.with_its_row_locked, "statement timeout", "", True),
        (faulty.with_no_connection_left, "", "too many clients", False),
        (faulty.killed, "", "", False),
        (faulty.stopped, "", "", False),
    ],
    ids=["refuses writes", "revoked right", "locked row", "no connection", "killed", "hangs"],
)
async def test_a_run_waits_out_a_fault(
    site: Site, tmp_path: Path, fault: Fault, says: str, database: str, readable: bool
) -> None:
    """DA-18, DA-32. What an operator can mend ends no run: it waits, uses no attempt, and every command tells of it."""
    looks = Looks()
    looks.may.set()
    busy = await site.on(errand(tmp_path, [looks.tool], asking(LOOK)))
    run_id = (await busy.accept({}, "errand")).run_id
    async with busy.worker():
        async with fault(site, run_id):
            await begin(busy, run_id)
            told = await site.status_with("faults", "broken", str(run_id))
            assert says in told.text
            assert told.remedy is not None
            if database or not readable:
                assert database in (await site.status_with("database", "broken")).text
            if readable:
                doing = await site.is_doing(run_id, "store_fault")
                assert says in doing["text"]
                assert doing["steps"] == ["act.1/exchange.1/model.1"]
        done = await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=120)
        assert says in (await waits_told(busy, run_id))[0]
    assert "found" in done.recommendation
    assert looks.calls == [1]
    assert {step.attempt for step in await busy.steps(run_id)} == {1}
    status = await site.status()
    assert {status[part].state for part in ("database", "faults", "queue")} == {"fine"}


async def test_a_deadlock_is_over_at_once(site: Site, tmp_path: Path) -> None:
    """DA-18. Of two that wait for each other the server ends one; where it is ours, the step waits and is done once."""
    looks = Looks()
    busy = await site.on(errand(tmp_path, [looks.tool], asking(LOOK)))
    run_id = await busy.start({}, "errand")
    async with busy.worker():

        async def acting() -> list[int]:
            return looks.calls

        await eventually(acting, "the tool acts")
        async with faulty.in_a_deadlock(site, run_id):
            looks.may.set()

            async def blocked() -> bool:
                with site.admin() as conn:
                    waiting = (
                        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%agent_events%'"
                    )
                    return conn.execute(waiting.encode()).fetchone() is not None

            await eventually(blocked, "the commit waits for the lock")
        done = await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
    assert "found" in done.recommendation
    assert looks.calls == [1]


async def test_a_result_that_cannot_be_written_is_no_failed_tool(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18, DA-32. The claim can be written and the result cannot: the run waits, and does not act again meanwhile."""
    monkeypatch.setattr(services, "COMMIT_PATIENCE", 0.5)
    looks = Looks()
    busy = await site.on(errand(tmp_path, [looks.tool], asking(LOOK)))
    run_id = await busy.start({}, "errand")
    async with busy.worker():

        async def acting() -> list[int]:
            return looks.calls

        await eventually(acting, "the tool acts")
        site.does("revoke insert on agent_ops.agent_messages from casework_runtime")
        looks.may.set()
        doing = await site.is_doing(run_id, "store_fault")
        assert doing["steps"] == ["act.1/exchange.1/look.1"]
        fault = await site.status_with("faults", "broken", "INSERT on agent_ops.agent_messages")
        assert str(run_id) in fault.text
        assert looks.calls == [1]
        site.does("grant insert on agent_ops.agent_messages to casework_runtime")
        done = await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
    assert "found" in done.recommendation
    assert looks.calls == [1, 2]
    assert "agent.tool_failed" not in [event.kind for event in await busy.events(run_id)]


async def test_store_faults_leave_a_tool_its_attempts(site: Site, tmp_path: Path) -> None:
    """DA-18. Attempts are the tool's own: a database that refused the claims in between took none of them."""
    calls: list[int] = []

    @tool(repeat=Repeat.KEYED)
    def look(ctx: ToolContext) -> str:
        """Look, in vain twice."""
        calls.append(ctx.attempt)
        if len(calls) < 3:
            raise ConnectionError("no line")
        return "found"

    busy = await site.on(errand(tmp_path, [look], asking(LOOK)))
    run_id = (await busy.accept({}, "errand")).run_id
    site.does("alter table agent_ops.agent_step_attempts rename column started_at to begun_at")
    async with busy.worker():
        await begin(busy, run_id)
        await site.status_with("faults", "broken", "started_at")
        site.does("alter table agent_ops.agent_step_attempts rename column begun_at to started_at")
        done = await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
    assert "found" in done.recommendation
    assert calls == [1, 2, 3]


async def test_a_decision_that_cannot_be_written_is_told_and_kept(site: Site, tmp_path: Path) -> None:
    """DA-18, DA-32. A locked row holds up a decision: no intended wait any more, and the decision is not lost."""
    busy = await site.on(errand(tmp_path, [], asking([])))
    run_id = await busy.start({}, "errand")
    async with busy.worker():
        await busy.reaches(run_id, "AWAITING_REVIEW")
        assert (await site.doing(run_id))["kind"] == "waiting_for_person"
        async with faulty.with_its_row_locked(site, run_id):
            await busy.decide(run_id, "approve")
            assert "statement timeout" in (await site.is_doing(run_id, "store_fault"))["text"]
        assert (await busy.reaches(run_id, "COMPLETED", deadline_s=60)).outcome == "approved"
        assert "statement timeout" in (await waits_told(busy, run_id))[0]


async def test_a_write_that_hangs_at_every_attempt_ends_no_run(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. The engine times every attempt out, and no attempt can say why: the run tries again all the same."""
    monkeypatch.setattr(policies, "STORE", replace(policies.STORE, attempts=2, start_to_close=0.5))
    busy = await site.on(errand(tmp_path, [], asking([])))
    run_id = await busy.start({}, "errand")
    async with busy.worker():
        await busy.reaches(run_id, "AWAITING_REVIEW")
        async with faulty.with_its_row_locked(site, run_id):
            await busy.decide(run_id, "approve")

            async def timed_out() -> bool:
                history = await busy.client.get_workflow_handle(str(run_id)).fetch_history()
                kinds = [event.event_type for event in history.events]
                return kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT) >= 2

            await eventually(timed_out, "the write is given up twice", deadline_s=60)
        assert (await busy.reaches(run_id, "COMPLETED", deadline_s=60)).outcome == "approved"
        assert "time-out" in (await waits_told(busy, run_id))[0]
