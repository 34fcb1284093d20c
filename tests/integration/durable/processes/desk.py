"""A yard with a desk: trays of one that wait for runs and people, and the activities of a worker, called by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from temporalio.client import WorkflowHandle
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.task_runs import TaskRunActivities
from casework.durable.contracts import RunEnd, RunStart
from casework.durable.process_contracts import Outcome, TrayEnd, TrayWork, standing
from casework.durable.task_run_contracts import EndTaskRun, TaskRunBegun
from casework.process import Transaction
from casework.store.processes import linked_runs
from casework.store.processes.linked_runs import LinkedRun
from casework.store.rows import RunRow
from tests.integration.durable.conftest import TENANT, eventually
from tests.integration.durable.processes.trays import Yard


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Desk(Yard):
    """A yard with the activities of one worker, which remembers nothing."""

    def __post_init__(self) -> None:
        self.activities = TaskRunActivities(self.house.services())

    async def taken(self, uuid: UUID, process: str) -> Transaction:
        """The Transaction, the only one that waits, as the claim of a process left it."""
        start = await self.claimed(process, 1)
        found = await self.get(uuid)
        assert found.claim_id == start.claim_id
        return found

    async def runs(self, uuid: UUID) -> list[LinkedRun]:
        async with self.house.db.transaction() as conn:
            return await linked_runs.of(conn, TENANT, uuid)

    async def begin(self, work: TrayWork) -> TaskRunBegun:
        """The first activity, as a worker calls it."""
        begun: TaskRunBegun = await self._worker().run(self.activities.begin_task_run, work)
        return begun

    async def begun(self, work: TrayWork) -> RunStart:
        """The same, where a run is to be carried out."""
        begun = await self.begin(work)
        assert begun.start is not None, begun.outcome
        return begun.start

    async def end(self, work: TrayWork, start: RunStart, end: RunEnd) -> Outcome:
        """The second activity."""
        asked = EndTaskRun(work, start.run_id, end)
        outcome: Outcome = await self._worker().run(self.activities.end_task_run, asked)
        return outcome

    def _worker(self) -> ActivityEnvironment:
        worker = ActivityEnvironment()
        worker.info = replace(worker.info, task_queue=self.house.settings.temporal.task_queue)
        return worker

    async def tray(self, uuid: UUID, process: str) -> WorkflowHandle[Any, TrayEnd]:
        """The tray of that one Transaction, claimed and started."""
        start = await self.claimed(process, 1)
        assert start.entries[0].uuid == uuid
        return await self.start(start)

    async def waiting(self, uuid: UUID, status: str = "AWAITING_REVIEW") -> RunRow:
        """The newest run of a Transaction, once it has that status."""

        async def look() -> RunRow | None:
            linked = await self.runs(uuid)
            row = await self.house.run(linked[-1].run_id) if linked else None
            return row if row is not None and row.status == status else None

        return await eventually(look, f"the run of Transaction {uuid} is {status}")

    async def becomes(self, uuid: UUID, status: str) -> Transaction:
        """The Transaction, once it has that status."""

        async def look() -> Transaction | None:
            found = await self.get(uuid)
            return found if found.status == status else None

        return await eventually(look, f"Transaction {uuid} is {status}")

    async def carried_out(self, start: RunStart) -> RunEnd:
        """The run, by the engine, to its end."""
        queue = self.house.settings.temporal.task_queue
        await self.house.runs.start(start, queue)
        end: RunEnd = await self.house.client.get_workflow_handle(start.run_id, result_type=RunEnd).result()
        return end


def work_on(claimed: Transaction, station: str, *, visit: int = 1, attempt: int = 1) -> TrayWork:
    """What the tray of a claim asks for at a station."""
    assert claimed.claim_id is not None
    assert claimed.process is not None
    there = standing([(claimed.uuid, claimed.status)])
    return TrayWork(TENANT, claimed.process, claimed.claim_id, station, visit, attempt, there)
