"""Transactions of a house, claimed into trays of one; and the activities of a worker, called by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from temporalio.client import WorkflowHandle
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.task_runs import TaskRunActivities
from casework.durable.contracts import RunEnd, RunStart
from casework.durable.process_contracts import Outcome, TrayEnd, TrayWork, standing
from casework.durable.task_run_contracts import EndTaskRun, TaskRunBegun
from casework.durable.trays import start_tray, tray_id, tray_start
from casework.process import ErrorEntity, Transaction
from casework.store.processes import claims, linked_runs, task_errors, task_steps, transactions
from casework.store.processes.linked_runs import LinkedRun
from casework.store.processes.task_steps import StepRow
from casework.store.processes.transactions import StageRow
from casework.store.rows import RunRow
from tests.integration.durable.conftest import TENANT, House, eventually


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Desk:
    """A house with its Transactions. `activities` are those of one worker, which remembers nothing."""

    house: House
    activities: TaskRunActivities = field(init=False)

    def __post_init__(self) -> None:
        self.activities = TaskRunActivities(self.house.services())

    async def add(self, status: str, **more: Any) -> UUID:
        """A Transaction in that status."""
        made = Transaction(uuid=uuid4(), status=status, start_time=now(), **more)
        async with self.house.db.transaction() as conn:
            assert await transactions.insert(conn, made, "test", "test", now())
        return made.uuid

    async def claimed(self, uuid: UUID, process: str, **more: Any) -> Transaction:
        """The Transaction, claimed by the Monitor of a process."""
        monitor: Any = self.house.app.lines()[process].process.monitor
        async with self.house.db.transaction() as conn:
            (found,) = await claims.claim(
                conn,
                TENANT,
                status=monitor.status_to_monitor,
                into=monitor.status_to_set,
                claim_id=uuid4(),
                most=1,
                process=process,
                by=monitor.monitor_class(),
                at=now(),
                **more,
            )
        assert found.uuid == uuid
        return found

    async def get(self, uuid: UUID) -> Transaction:
        async with self.house.db.transaction() as conn:
            found = await transactions.get(conn, TENANT, uuid)
        assert found is not None
        return found

    async def errors(self, uuid: UUID) -> list[ErrorEntity]:
        async with self.house.db.transaction() as conn:
            return await task_errors.of(conn, TENANT, uuid)

    async def steps(self, uuid: UUID) -> list[StepRow]:
        async with self.house.db.transaction() as conn:
            return await task_steps.of(conn, TENANT, uuid)

    async def stages(self, uuid: UUID) -> list[StageRow]:
        async with self.house.db.transaction() as conn:
            return await transactions.stages(conn, TENANT, uuid)

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
        claimed = await self.claimed(uuid, process)
        start = tray_start(self.house.app.lines()[process], [claimed], self.house.settings.histories)
        await start_tray(self.house.client, start, self.house.settings.temporal.task_queue)
        return self.house.client.get_workflow_handle(tray_id(start.claim_id), result_type=TrayEnd)

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
