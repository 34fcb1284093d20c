"""The parts of a run that has rolled over: their histories, and a house whose runs do so early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from casework.durable.worker import WORKFLOWS, workflow_runner
from casework.settings import HistorySettings
from tests.integration.durable.conftest import House


async def parts_of(client: Client, run_id: UUID | str) -> list[WorkflowHistory]:
    """The history of each part, the first one first. They have one workflow id and an engine's run id each."""
    found: list[WorkflowHistory] = []
    engine_id: str | None = None
    while True:
        history = await client.get_workflow_handle(str(run_id), run_id=engine_id).fetch_history()
        found.insert(0, history)
        engine_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not engine_id:
            return found


def early(house: House, events: int, *, cached: bool = True) -> House:
    """`house`, but its runs roll over after so many events; without `cached` each step is a replay."""
    settings = replace(house.settings, histories=HistorySettings(roll_over_events=events))
    if not cached:
        settings = replace(settings, worker=replace(settings.worker, cache_size=0))
    return replace(house, settings=settings)


async def replay_all(client: Client, histories: Sequence[WorkflowHistory]) -> None:
    """Replay each with the present code, and with what the client reads values with."""
    replayer = Replayer(workflows=WORKFLOWS, data_converter=client.data_converter, workflow_runner=workflow_runner())
    for history in histories:
        await replayer.replay_workflow(history)
