"""A run whose worker is lost in the middle of a visit goes on there: same run, same node, nothing asked twice."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from casework.durable.activities.services import Services
from casework.durable.worker import make_worker, models_of
from casework.store import runs
from casework.testing.openai_server import OpenAiServer
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually
from tests.integration.durable.test_killed_model import KEY, HangsOnce, at_provider, worker_process


async def test_a_killed_worker_leaves_the_run_where_it_was(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AW-14. Killed after a recorded exchange, in the middle of the next: another worker goes on in the same visit of
    the same run. The model was asked once for what is recorded, and no second run came about."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    script = HangsOnce(request=2)
    with OpenAiServer(script) as server:
        there = at_provider(house, server)
        run_id = await there.start(APPLICATION)
        with worker_process(there, tmp_path / "worker.log") as process:

            async def asked_again() -> bool:
                assert process.poll() is None, (tmp_path / "worker.log").read_text()
                return script.asked == 2

            await eventually(asked_again, "the provider is asked for the second answer")
            before = await there.run(run_id)
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        recorded = {step.path: step for step in await there.steps(run_id) if step.state == "COMPLETED"}
        assert "underwrite.1/exchange.1/model.1" in recorded
        assert (before.status, before.current_node) == ("RUNNING", "underwrite")
        services = Services(there.db, there.app, models_of(there.app, there.settings), there.settings)
        async with make_worker(there.client, services, there.settings):
            row = await there.reaches(run_id, "AWAITING_REVIEW")
        openings = [len(each.body["messages"]) for each in server.requests]
    assert openings.count(min(openings)) == 1
    steps = {step.path: step for step in await there.steps(run_id)}
    assert all(steps[path] == step for path, step in recorded.items())
    assert (row.turn, row.loop_count) == (1, 2)
    visits = [event.path for event in await there.events(run_id) if event.kind == "agent.node_started"]
    assert visits == ["underwrite.1", "decision.1"]
    async with there.db.transaction() as conn:
        page = await runs.list_page(conn, TENANT)
    assert [each.run_id for each in page.rows] == [run_id]
