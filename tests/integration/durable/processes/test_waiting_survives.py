"""Agent and manual tasks while the workers are killed on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from casework.durable.activities.faults import FOLDER, Fault, FaultFolder
from casework.settings import DatabaseSettings, Secret
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.desk import Desk
from tests.integration.durable.processes.waiting_app import both
from tests.integration.durable.worker_processes import worker_process

APP = "tests.integration.durable.processes.waiting_app:both"


def kills(tray: str, uuid: UUID) -> list[Fault]:
    """At each place between two commits; each activity has three attempts, so two kills at most."""
    return [
        Fault("asked-for-a-run", "claimed", f"assess.1/{uuid}/begin", tray),
        Fault("row-of-the-run", "committed", f"assess.1/{uuid}/begin", tray),
        Fault("outcome-applied", "committed", f"assess.1/{uuid}", tray),
        Fault("row-of-the-question", "committed", f"ask.1/{uuid}/begin", tray),
        Fault("decision-claimed", "claimed", f"ask.1/{uuid}", tray),
        Fault("decision-taken", "acted", f"ask.1/{uuid}", tray),
    ]


async def test_killed_workers_leave_one_run_one_review_and_one_outcome(house: House, tmp_path: Path) -> None:
    """BP-9. Killed before and after the commits of both tasks: each has one run, one answer, one outcome applied."""
    house.app = both
    await house.open()
    desk, folder = Desk(house), FaultFolder(tmp_path / "drill")
    folder.prepare()
    uuid = await desk.add({"n": 5})
    tray = await desk.tray(uuid, "processing")
    planned = kills(tray.id, uuid)
    folder.plan(planned)
    settings = replace(house.settings, database=DatabaseSettings(url=Secret(house.dsn)))
    answered: set[UUID] = set()

    async def moved_on() -> bool:
        for run in await desk.runs(uuid):
            if run.status == "AWAITING_REVIEW" and run.run_id not in answered:
                await house.decide(run.run_id, "yes", "it is due")
                answered.add(run.run_id)
        return process.poll() is not None or (await desk.get(uuid)).status not in ("PROCESSING_IN_PROGRESS",)

    for _ in range(len(planned) + 1):
        with worker_process(settings, APP, tmp_path, **{FOLDER: str(folder.folder)}) as process:
            await eventually(moved_on, "the worker is killed, or the Transaction is through")
    async with house.worker():
        end = await tray.result()
    assert [mark.id for mark in folder.marks()] == [fault.id for fault in planned]
    assert (end.transactions, end.left) == (1, 0)
    assert [(run.task, run.status) for run in await desk.runs(uuid)] == [("assess", "COMPLETED"), ("ask", "COMPLETED")]
    assert [step.state for step in await desk.steps(uuid)] == ["COMPLETED"] * 2
    assert await desk.rows("select status from agent_ops.agent_reviews") == [("decided",)]
    assert await desk.errors(uuid) == []
    made = await desk.get(uuid)
    assert (made.status, made.data["twice"], made.data["paid"][0]) == ("PROCESSING_COMPLETED", 10, "yes")
