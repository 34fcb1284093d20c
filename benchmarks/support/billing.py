"""How many engine actions a run costs, by the rules that Temporal Cloud bills by.

Its documentation ("Temporal Cloud Actions") names them: a workflow started; an activity started, and each retry; a
timer started; a signal, whoever sends it; an update and a query that a worker receives; search attributes upserted by a
workflow; a version marker, side effect or local activity recorded; and an activity's heartbeat that reaches the server.
Replay costs nothing, neither do workflow tasks and the ends of things. All but queries, heartbeats and rejected
updates are in the history. The server counts for itself too, heartbeats included: its metric `action`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.request import urlopen

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

HEARTBEAT = "grpc_RecordActivityTaskHeartbeat"

BILLED = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: "workflow started",
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: "activity started",
    EventType.EVENT_TYPE_TIMER_STARTED: "timer started",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: "signal",
    EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED: "signal",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: "update",
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: "search attributes upserted",
    EventType.EVENT_TYPE_MARKER_RECORDED: "marker recorded",
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: "child workflow",
}
"""Events that are an action each. Retries are told by the `attempt` of an activity's start."""

_ACTION = re.compile(r'^action\{[^}]*action_type="(?P<kind>[^"]+)"[^}]*namespace="(?P<namespace>[^"]+)"[^}]*\} (\S+)$')
_METRICS = re.compile(r"^Temporal Metrics:\s+(http://\S+)$", re.MULTILINE)


def of_history(history: Iterable[HistoryEvent]) -> Counter[str]:
    """Actions of a run by kind, as far as its history tells them."""
    found: Counter[str] = Counter()
    for event in history:
        kind = BILLED.get(event.event_type)
        if kind is not None:
            found[kind] += 1
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            found["activity retried"] += event.activity_task_started_event_attributes.attempt - 1
    return +found


def metrics_address(log: str) -> str:
    """Where the development server shows its metrics, from what it says when it starts."""
    found = _METRICS.findall(log)
    if not found:
        raise LookupError("the server's log does not say where its metrics are")
    return str(found[-1])


def of_server(url: str, namespace: str = "default") -> Counter[str]:
    """Actions that the server has counted since its start, by its own names of them."""
    with urlopen(url, timeout=10) as answer:
        return read_counters(answer.read().decode(), namespace)


def read_counters(text: str, namespace: str) -> Counter[str]:
    """The counters `action` of a namespace, out of metrics in Prometheus' text form."""
    made = (_ACTION.match(line) for line in text.splitlines())
    return Counter({one["kind"]: int(float(one[3])) for one in made if one and one["namespace"] == namespace})
