"""Run workflows of other builds, under the same name: what a worker with foreign or changed code does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import RunEnd, RunStart
    from casework.durable.workflows.run import CaseRun


@workflow.defn(name=contracts.RUN_WORKFLOW)
class Ends:
    """Ends at once, by an error unless it was cancelled, and writes no row."""

    @workflow.run
    async def run(self, start: Any) -> None:
        if workflow.cancellation_reason() is not None:
            await workflow.sleep(timedelta(hours=1))
        raise ApplicationError("by itself", non_retryable=True)


@workflow.defn(name=contracts.RUN_WORKFLOW)
class Changed:
    """Does something else than the histories say."""

    @workflow.run
    async def run(self, start: Any) -> None:
        await workflow.sleep(timedelta(days=1))

    @workflow.signal(name=contracts.DECIDE_SIGNAL)
    def decide(self, decision: Any) -> None:
        pass


@workflow.defn(name=contracts.RUN_WORKFLOW)
class Patched(CaseRun):
    """A later build of ours: it rests before the work, behind a patch point, so it goes on with what others began."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        super().__init__(start)

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        if workflow.patched("rests-first"):
            await workflow.sleep(timedelta(milliseconds=10))
        return await super().run(start)
