"""What Temporal keeps of an agent's run, by its exchanges, whoever made it: read from the histories of all parts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionStatus

LOOK_EVERY_S = 0.5
STUCK_ATTEMPTS = 3
"""A workflow task that failed so often is not getting on."""

OPEN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)
"""A run that just went on as a new history may be shown by its old one for a moment."""


@dataclass(frozen=True)
class Weight:
    """Bytes and events of a run after so many exchanges."""

    exchanges: int
    size: int
    events: int

    @property
    def bytes_each(self) -> float:
        """Bytes of an exchange."""
        return self.size / self.exchanges

    @property
    def events_each(self) -> float:
        """Events of an exchange."""
        return self.events / self.exchanges


async def weights(client: Client, workflow_id: str) -> dict[int, Weight]:
    """The weight after each exchange of a run, as soon as it has ended: up to the model call of the next one.

    Raises:
        WorkflowFailureError: it did not end well.
    """
    await client.get_workflow_handle(workflow_id).result()
    found, size = {}, 0
    calls = 0
    for events, event in enumerate(await _events(client, workflow_id)):
        if calls_model(event):
            if calls:
                found[calls] = Weight(calls, size, events)
            calls += 1
        size += event.ByteSize()
    return found


async def walked(client: Client, workflow_id: str) -> int:
    """How many exchanges a run has walked when it has ended, or gets on no more; it is ended then."""
    handle = client.get_workflow_handle(workflow_id)
    while (described := await handle.describe()).status in OPEN:
        if described.raw_description.pending_workflow_task.attempt > STUCK_ATTEMPTS:
            await handle.terminate("it gets on no more")
        await asyncio.sleep(LOOK_EVERY_S)
    calls = sum(calls_model(event) for event in await _events(client, workflow_id))
    return calls - 1  # an exchange is over when the model is called again


def calls_model(event: HistoryEvent) -> bool:
    """Whether it schedules a model call."""
    scheduled = event.activity_task_scheduled_event_attributes
    return scheduled.activity_id.endswith("/model.1") or scheduled.activity_type.name.endswith("__model_request")


async def _events(client: Client, workflow_id: str) -> list[HistoryEvent]:
    """The events of all parts of a run, in order."""
    found: list[HistoryEvent] = []
    engine_id: str | None = None
    while True:
        history = await client.get_workflow_handle(workflow_id, run_id=engine_id).fetch_history()
        found[:0] = history.events
        engine_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not engine_id:
            return found
