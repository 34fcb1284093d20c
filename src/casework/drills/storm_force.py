"""The force of a storm: workers that are killed every few seconds while others stand by and the dead are replaced.

A kill takes an attempt of everything that is in flight in the process, and a tool has few. That a step is given up when
its last attempt dies too is as promised, and no matter of this drill: a kill waits while any step is at its last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client as Engine
from temporalio.service import RPCError, RPCStatusCode

from casework.drills.ground import Ground
from casework.durable.connection import connect

LOOK_EVERY_S = 0.1


class Reaper:
    """Kills workers, and knows why it waits."""

    def __init__(self, ground: Ground, every_s: float, under_way: Collection[str]) -> None:
        self._ground = ground
        self._every_s = every_s
        self._under_way = under_way
        self._engine: Engine | None = None
        self.spared = 0
        """How often a kill waited for a step at its last attempt."""

    async def run(self) -> None:
        """Kill one worker every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            while not await self._kill():  # noqa: ASYNC110  # no event tells what steps of others are at
                await asyncio.sleep(LOOK_EVERY_S)

    async def _kill(self) -> bool:
        if await self._at_last_attempt():
            self.spared += 1
            return False
        return self._ground.crew.kill_ready() is not None

    async def _at_last_attempt(self) -> bool:
        """Whether a step of a run under way has one attempt left; yes while Temporal cannot be asked."""
        try:
            if self._engine is None:
                self._engine = await connect(self._ground.stack.settings)
            found = await asyncio.gather(*(self._pending(run_id) for run_id in self._under_way))
        except RPCError:
            return True
        return any(each.attempt >= each.maximum_attempts > 0 for pending in found for each in pending)

    async def _pending(self, run_id: str) -> Any:
        """The activities of a run that have not ended. A run that Temporal has not begun has none."""
        assert self._engine is not None
        asked = DescribeWorkflowExecutionRequest(
            namespace=self._engine.namespace, execution=WorkflowExecution(workflow_id=run_id)
        )
        try:
            # Asked once: the SDK's own retries would tell on stderr that the engine was killed, which is known.
            found = await self._engine.workflow_service.describe_workflow_execution(asked, retry=False)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ()
            raise
        return found.pending_activities
