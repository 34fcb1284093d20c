"""Workers of several builds on one house's task queue, and what histories tell of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Literal
from uuid import UUID

from temporalio.client import WorkflowHistory
from temporalio.worker import Worker

from casework.durable import builds
from casework.durable.activations import patient_worker
from casework.durable.activities.model import ModelActivity
from casework.durable.activities.project import ProjectActivity
from casework.durable.activities.tool import ToolActivity
from casework.durable.activities.tray import TrayActivities
from casework.durable.builds import Build, Builds, deployment
from casework.durable.queues import station_worker
from casework.durable.worker import make_worker, workflow_runner
from casework.durable.workflows.staying import StayingTreeRun
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.other_builds import Patched


def of_build(house: House, build: str | None, runs: Literal["move_on", "stay"] = "move_on") -> House:
    """The house whose workers are of that build."""
    worker = replace(house.settings.worker, build=build, runs=runs)
    return replace(house, settings=replace(house.settings, worker=worker))


def a_worker(house: House, build: str | None, runs: Literal["move_on", "stay"] = "move_on") -> Worker:
    """A worker of the present code."""
    other = of_build(house, build, runs)
    return make_worker(house.client, house.services(), other.settings)


def a_patched_worker(house: House, build: str) -> Worker:
    """A worker of a later build, whose runs of graphs have one more step."""
    settings, services = of_build(house, build).settings, house.services()
    queue, versioned = settings.temporal.task_queue, deployment(settings)
    stations = station_worker(
        4, queue, activities=[TrayActivities(services).work_tray], client=house.client, deployment_config=versioned
    )
    return patient_worker(
        4,
        [stations],
        client=house.client,
        task_queue=queue,
        workflows=[Patched, StayingTreeRun],
        activities=[
            ModelActivity(services).call_model,
            ToolActivity(services).call_tool,
            ProjectActivity(services).project,
        ],
        workflow_runner=workflow_runner(),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.worker.sticky_queue_timeout_s),
        deployment_config=versioned,
    )


async def is_seen(house: House, build: str) -> None:
    """Return when a worker of the build is seen to ask for work."""

    async def look() -> bool:
        return any(each.name == build and each.workers for each in (await seen(house)).builds)

    await eventually(look, f"a worker of build {build} asks for work")


async def make_current(house: House, build: str | None) -> None:
    """Make a build current that has a worker."""
    if build is not None:
        await is_seen(house, build)
    await builds.make_current(house.client, house.settings.temporal.task_queue, build)


async def seen(house: House) -> Builds:
    return await builds.look(house.client, house.settings.temporal.task_queue)


async def becomes(house: House, name: str, *, state: str, staying: int) -> Build:
    """The build once it is told so; the engine's counts are some seconds late."""

    async def look() -> Build | None:
        [found] = [each for each in (await seen(house)).builds if each.name == name]
        return found if (found.state, found.staying) == (state, staying) else None

    return await eventually(look, f"build {name} is {state}, {staying} runs stay with it")


async def history_of(house: House, run_id: UUID) -> WorkflowHistory:
    return await house.client.get_workflow_handle(str(run_id)).fetch_history()


async def builds_of(house: House, run_id: UUID) -> list[str]:
    """The builds that took the run's workflow tasks, each once for every time that it took over."""
    took: list[str] = []
    for event in (await history_of(house, run_id)).events:
        if event.HasField("workflow_task_completed_event_attributes"):
            build = event.workflow_task_completed_event_attributes.deployment_version.build_id
            if not took or took[-1] != build:
                took.append(build)
    return took


async def patches_of(house: House, run_id: UUID) -> int:
    """How many patch points the run has passed on their new side."""
    history = await history_of(house, run_id)
    return sum(event.HasField("marker_recorded_event_attributes") for event in history.events)
