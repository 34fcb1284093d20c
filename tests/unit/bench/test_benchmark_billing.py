"""Counting engine actions: from a recorded history, and from what the server says."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.support import billing
from temporalio.client import WorkflowHistory

HISTORIES = Path(__file__).parents[2] / "replay/histories/0.1.0"
METRICS = """\
# TYPE action counter
action{action_type="command_ScheduleActivityTask",namespace="default",operation="X",service_name="frontend"} 10
action{action_type="grpc_RecordActivityTaskHeartbeat",namespace="default",operation="Y",service_name="frontend"} 1e+06
action{action_type="grpc_StartWorkflowExecution",namespace="temporal_system",operation="Z",service_name="frontend"} 2
actions_of_another_kind{action_type="x",namespace="default"} 4
"""


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("approved_after_more_info", {"workflow started": 1, "activity started": 13, "signal": 2}),
        ("declined_at_the_turn_limit", {"workflow started": 1, "activity started": 12, "update": 3}),
        (
            "told_refused_and_given_up",
            {"workflow started": 1, "activity started": 6, "activity retried": 2, "signal": 1},
        ),
    ],
)
def test_actions_of_a_history(name: str, actions: dict[str, int]) -> None:
    """DA-50. The start, each activity and its retries, signals and updates are an action each; nothing else here is."""
    history = WorkflowHistory.from_json(name, (HISTORIES / f"{name}.json").read_text())

    assert billing.of_history(history.events) == actions


def test_the_servers_counters_are_read_for_one_namespace() -> None:
    found = billing.read_counters(METRICS, "default")

    assert found == {"command_ScheduleActivityTask": 10, billing.HEARTBEAT: 1_000_000}


def test_the_log_says_where_the_metrics_are() -> None:
    """The last start counts."""
    log = "Temporal Metrics:     http://localhost:1/metrics\nx\nTemporal Metrics:     http://localhost:2/metrics\n"

    assert billing.metrics_address(log) == "http://localhost:2/metrics"
    with pytest.raises(LookupError):
        billing.metrics_address("nothing")
