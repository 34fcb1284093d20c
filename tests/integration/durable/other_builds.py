"""Run workflows of other builds, under the same name: what a worker with foreign or changed code does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from casework.durable import contracts


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
