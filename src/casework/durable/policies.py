"""Retry policies, one per operation, reusable and shown on every run.

An attempt ends at `start_to_close`; a killed worker is noticed after `HEARTBEAT`, not at the end of the attempt. Only
the model's policy has a bound over all attempts (`schedule_to_close`): a tool or a write may wait in the queue for as
long as no worker is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

HEARTBEAT = timedelta(seconds=2)
"""A worker that is silent for this long is taken for dead."""


_CANCELS = {False: ActivityCancellationType.TRY_CANCEL, True: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED}


@dataclass(frozen=True)
class OperationPolicy:
    """How one operation is tried. Times in seconds."""

    operation: str
    attempts: int
    start_to_close: float
    schedule_to_close: float | None = None
    first_delay: float = 0.1
    backoff: float = 3.0
    longest_delay: float = 20.0
    used: int = 0
    """Of the attempts, those that were made elsewhere."""
    of_step: bool = True
    """Whether it is a step, with a row in the ledger under its own path."""
    waits_when_cancelled: bool = False
    """Whether what it has done by then is waited for."""

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `workflow.execute_activity`."""
        whole = self.schedule_to_close
        return {
            "start_to_close_timeout": timedelta(seconds=self.start_to_close),
            "schedule_to_close_timeout": None if whole is None else timedelta(seconds=whole),
            "heartbeat_timeout": HEARTBEAT,
            "retry_policy": RetryPolicy(
                initial_interval=timedelta(seconds=self.first_delay),
                backoff_coefficient=self.backoff,
                maximum_interval=timedelta(seconds=self.longest_delay),
                maximum_attempts=self.attempts - self.used,
            ),
            "cancellation_type": _CANCELS[self.waits_when_cancelled],
        }


MODEL = OperationPolicy("model", attempts=4, start_to_close=60, schedule_to_close=180)
TOOL = OperationPolicy("tool", attempts=3, start_to_close=60)
TRIED_TOOL = replace(TOOL, used=1, first_delay=TOOL.first_delay * TOOL.backoff)
"""Of a tool whose first attempt was made in a segment."""
STORE = OperationPolicy("store", attempts=5, start_to_close=15, of_step=False)
SEGMENT = OperationPolicy("segment", attempts=3, start_to_close=90, of_step=False, waits_when_cancelled=True)
"""Its time: what a chain may take by itself, its last tool's deadline, and patience with the database."""

POLICIES = {policy.operation: policy for policy in (MODEL, TOOL, STORE, SEGMENT)}

STORE_PATIENCE = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds a run waits before it tries an unreachable database again; the last one repeats."""
