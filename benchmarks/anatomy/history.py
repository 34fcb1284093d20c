"""What a history tells of time and bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent


@dataclass
class Kind:
    """Events of one kind: how many, and their bytes; `payload` are the bytes of inputs and results among them."""

    count: int = 0
    size: int = 0
    payload: int = 0


@dataclass
class Read:
    """A history in figures. Milliseconds: of each activity from its start to its end; of all workflow tasks, waiting
    for a worker and at work."""

    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    activities: dict[str, float] = field(default_factory=dict)
    tasks: int = 0
    tasks_waiting_ms: float = 0.0
    tasks_working_ms: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of all events."""
        return sum(kind.size for kind in self.kinds.values())


def read(events: Sequence[HistoryEvent]) -> Read:
    """The figures of a history."""
    found = Read()
    by_id = {event.event_id: event for event in events}
    for event in events:
        name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        kind = found.kinds[name]
        kind.count += 1
        kind.size += event.ByteSize()
        kind.payload += _payload(event)
        _time(event, by_id, found)
    return found


def _payload(event: HistoryEvent) -> int:
    scheduled, completed = (
        event.activity_task_scheduled_event_attributes,
        event.activity_task_completed_event_attributes,
    )
    started = event.workflow_execution_started_event_attributes
    return sum(len(part.data) for held in (scheduled.input, completed.result, started.input) for part in held.payloads)


def _time(event: HistoryEvent, by_id: dict[int, HistoryEvent], found: Read) -> None:
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        ends = event.activity_task_completed_event_attributes
        path = by_id[ends.scheduled_event_id].activity_task_scheduled_event_attributes.activity_id
        found.activities[path] = _at(event) - _at(by_id[ends.started_event_id])
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        task = event.workflow_task_completed_event_attributes
        started = _at(by_id[task.started_event_id])
        found.tasks += 1
        found.tasks_waiting_ms += started - _at(by_id[task.scheduled_event_id])
        found.tasks_working_ms += _at(event) - started


def _at(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e6
