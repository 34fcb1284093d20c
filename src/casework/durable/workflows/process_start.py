"""What a schedule starts: it starts the Monitor of the process, and lasts as long as that lives.

So the schedule's overlap policy says what happens to a start that comes while the Monitor is still there, and the
Monitor has one fixed id, however it was started.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from casework.durable import monitor_contracts as contracts
    from casework.durable.monitor_contracts import MonitorEnd, MonitorStart, ProcessEnd, ProcessStart


@workflow.defn(name=contracts.PROCESS_WORKFLOW)
class ProcessRun:
    """One start of a process by its schedule."""

    @workflow.run
    async def run(self, start: ProcessStart) -> ProcessEnd:
        """Start the Monitor and wait for its end."""
        try:
            end = await workflow.execute_child_workflow(
                contracts.MONITOR_WORKFLOW,
                MonitorStart(start.tenant, start.process, roll_over_events=start.roll_over_events),
                id=start.monitor,
                result_type=MonitorEnd,
                static_summary=f"Monitor of {start.process}"[:200],
            )
        except WorkflowAlreadyStartedError:
            return ProcessEnd(started=False)
        return ProcessEnd(started=True, monitor=end)
