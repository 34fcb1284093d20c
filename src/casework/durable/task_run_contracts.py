"""What crosses the durable boundary for agent and manual tasks; the same rules hold as in `contracts`."""

from dataclasses import dataclass

from casework.durable.contracts import RunEnd, RunStart
from casework.durable.process_contracts import Outcome, TrayWork

BEGIN_TASK_RUN = "casework.begin_task_run"
END_TASK_RUN = "casework.end_task_run"


@dataclass(frozen=True)
class TaskRunBegun:
    """The run that the task waits for, whose row is written; or what came of the work without one.

    `apart_ms` instead of both: the task has a limit, and is to be begun in its own queue.
    """

    start: RunStart | None = None
    outcome: Outcome | None = None
    apart_ms: int | None = None


@dataclass(frozen=True)
class EndTaskRun:
    """How the run of the task's one Transaction ended."""

    work: TrayWork
    run_id: str
    end: RunEnd
