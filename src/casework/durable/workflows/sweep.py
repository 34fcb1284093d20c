"""The sweep as a Temporal workflow: one activity, started by a schedule."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import SweepReport
    from casework.durable.policies import HEARTBEAT


@workflow.defn(name=contracts.SWEEP_WORKFLOW)
class Sweep:
    """Finds runs whose row and Temporal workflow do not agree."""

    @workflow.run
    async def run(self) -> SweepReport:
        """One sweep; what it could not do, the next one does."""
        report: SweepReport = await workflow.execute_activity(
            contracts.SWEEP,
            result_type=SweepReport,
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=2),
        )
        return report
