"""Free trees whose workers are lost, stopped or short of memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.worker import Interceptor, Replayer

from casework.app import App
from casework.durable.contracts import CancelRequest
from casework.durable.converter import DATA_CONVERTER
from casework.durable.trees import TreePlaces
from casework.durable.worker import WORKFLOWS, workflow_runner
from casework.settings import WorkerSettings
from casework.store import runs
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.free_tree_app import HANGS, app
from tests.integration.durable.test_free_trees import result_of
from tests.integration.durable.tree_notes import NOTES
from tests.integration.durable.worker_processes import killed_when

APP = "tests.integration.durable.free_tree_app:app"


async def killed_in_mid_tool(house: House, folder: Path) -> None:
    called = folder / "called"
    await killed_when(called.exists, "the tool is called", house, APP, folder, **{HANGS: str(called)})


async def test_another_worker_goes_on_with_the_tree_of_one_that_was_killed(house: House, tmp_path: Path) -> None:
    """TT-24, DA-1. SIGKILL in mid-tree: what was recorded is not asked again, the step in flight is done again."""
    async with house.with_app(app):
        pass  # published
    run_id = await house.start({}, "row")
    await killed_in_mid_tool(house, tmp_path)
    NOTES.clear()
    busy = replace(house, app=app)
    async with busy.worker():
        await busy.reaches(run_id, "COMPLETED")
    assert await result_of(busy, run_id) == ["ada 1: one", "ada 2: two", "here", "ada 3: three"]
    assert {note for note in NOTES if note.startswith("asked")} == {"asked ada: three"}
    steps = {step.path: step for step in await busy.steps(run_id)}
    assert list(steps) == ["row.1/model.1", "row.1/model.2", "row.1/wait_here.1", "row.1/model.3"]
    assert (steps["row.1/model.1"].attempt, steps["row.1/model.2"].attempt) == (1, 1)
    async with busy.db.transaction() as conn:
        attempts = await runs.attempts(conn, TENANT, run_id)
    of_tool = [each.outcome for each in attempts if each.step_id == steps["row.1/wait_here.1"].step_id]
    assert (of_tool[0], of_tool[-1]) == ("LOST", "COMPLETED")


async def test_a_tree_that_never_stays_in_memory(house: House) -> None:
    """TT-19, DA-16. Dropped after every workflow task, and rebuilt from its history: nothing is told twice.

    No callback runs because it was dropped; those that a replay runs again ran before it was.
    """
    NOTES.clear()
    small = replace(house, settings=replace(house.settings, worker=WorkerSettings(cache_size=0)))
    async with small.with_app(app) as busy:
        slow = await busy.start({"seconds": 1}, "sleeper")
        other = await busy.start({"rounds": 3}, "rounds")
        await busy.reaches(other, "COMPLETED")
        await busy.reaches(slow, "COMPLETED")
        assert {step.attempt for step in await busy.steps(other)} == {1}
        kinds = [event.kind for event in await busy.events(slow)]
        assert (kinds.count("agent.node_started"), kinds.count("agent.node_completed")) == (1, 1)
        assert "agent.node_terminated" not in kinds
    assert NOTES.count("began") > 1
    assert {note for note in NOTES if note.startswith(("e", "t"))} == {"ended"}


async def test_a_worker_that_stops_ends_nothing(house: House) -> None:
    """TT-19. A tree that rests is dropped with its worker: no callback, no listener, no event; another goes on."""
    NOTES.clear()
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "sleeper")

        async def rests() -> bool:
            return "agent.model_answered" in {event.kind for event in await busy.events(run_id)}

        await eventually(rests, "the tree rests")
        before = len(await busy.events(run_id))
    assert [note for note in NOTES if note.startswith(("e", "t"))] == []
    assert len(await busy.events(run_id)) == before
    async with busy.worker():
        await busy.runs.cancel(str(run_id), CancelRequest("olga", ""))
        await busy.reaches(run_id, "CANCELLED")
    assert [note for note in NOTES if note.startswith("asked")] == ["asked ada: before"]


def replayer(*interceptors: Interceptor) -> Replayer:
    return Replayer(
        workflows=WORKFLOWS,
        data_converter=DATA_CONVERTER,
        workflow_runner=workflow_runner(),
        interceptors=interceptors,
    )


async def test_what_a_tree_did_replays(house: House) -> None:
    """DA-16. The history of a tree gives the same commands again; without its code it does not."""
    async with house.with_app(app) as busy:
        run_id = await busy.start({"rounds": 3}, "rounds")
        await busy.reaches(run_id, "COMPLETED")
        handle = busy.client.get_workflow_handle(str(run_id))
        await handle.result()
        history = await handle.fetch_history()
    await replayer(TreePlaces(app.trees)).replay_workflow(history)
    found = await replayer().replay_workflow(history, raise_on_replay_failure=False)
    assert "ondeterminism" in str(found.replay_failure)


async def test_a_run_whose_version_is_gone_waits_for_it(house: House) -> None:
    """DA-19, AW-2. A worker without the tree's code ends no run that another began: it goes on later."""
    async with house.with_app(app):
        run_id = await house.start({}, "patient")
        await house.reaches(run_id, "RUNNING")
    handle = house.client.get_workflow_handle(str(run_id))

    async def refused() -> bool:
        events = (await handle.fetch_history()).events
        return any(event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED for event in events)

    without = House(house.dsn, house.db, house.client, house.settings, App())
    async with without.worker():
        await eventually(refused, "the worker without the tree refuses the run")
        assert (await without.run(run_id)).status == "RUNNING"
    async with House(house.dsn, house.db, house.client, house.settings, app).worker():
        await house.reaches(run_id, "COMPLETED")


async def test_a_commander_within_a_tree_asks_nobody(house: House) -> None:
    """TT-2. Its paths would be given twice; the error says what to do instead."""
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "nested")
        await busy.reaches(run_id, "COMPLETED")
        async with busy.db.transaction() as conn:
            found = {row.key: row.value for row in await runs.context(conn, TENANT, run_id)}
    assert "another Commander's" in found["result"]
