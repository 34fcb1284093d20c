"""A house in which trays run: Transactions put into the database, claimed as a Monitor does it, and walked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from dishka import Provider
from temporalio.client import WorkflowHandle

from casework.app import App
from casework.durable.process_contracts import TrayEnd, TrayStart
from casework.durable.trays import start_tray, tray_id, tray_start
from casework.process import BusinessProcess, ErrorEntity, ErrorPolicy, StatusSet, Transaction
from casework.store.processes import claims, task_errors, task_steps, transactions
from casework.store.processes.task_steps import StepRow
from casework.store.processes.transactions import StageRow
from tests.integration.durable.conftest import TENANT, House

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Yard:
    """Trays of one application in a house."""

    house: House
    _count: int = field(default=0)

    async def add(self, data: Mapping[str, Any] | None = None, status: str = "INTAKE_COMPLETED", **more: Any) -> UUID:
        """A Transaction that waits; the earlier added is the earlier claimed."""
        self._count += 1
        made = Transaction(
            uuid=more.pop("uuid", None) or uuid4(),
            status=status,
            start_time=BEGAN + timedelta(seconds=self._count),
            data=dict(data or {}),
            **more,
        )
        async with self.house.db.transaction() as conn:
            assert await transactions.insert(conn, made, "", "test", made.start_time)
        return made.uuid

    async def claimed(self, process: str = "processing", most: int = 100) -> TrayStart:
        """What a Monitor of the process would start a tray with."""
        monitor: Any = self.house.app.lines()[process].process.monitor
        return await self.claimed_as(monitor.status_to_monitor, monitor.status_to_set, process, most)

    async def claimed_as(self, status: str, into: str, process: str = "processing", most: int = 100) -> TrayStart:
        """The same from one status into another."""
        line = self.house.app.lines()[process]
        async with self.house.db.transaction() as conn:
            found = await claims.claim(
                conn,
                TENANT,
                status=status,
                into=into,
                claim_id=uuid4(),
                most=most,
                process=process,
                by=line.process.monitor.monitor_class(),
                at=datetime.now(UTC),
            )
        return tray_start(line, found, self.house.settings.histories)

    async def start(self, start: TrayStart) -> WorkflowHandle[Any, TrayEnd]:
        """The tray, started."""
        await start_tray(self.house.client, start, self.house.settings.temporal.task_queue)
        return self.house.client.get_workflow_handle(tray_id(start.claim_id), result_type=TrayEnd)

    async def walk(self, process: str = "processing", most: int = 100) -> TrayEnd:
        """Claim a tray and walk it to its end."""
        return await (await self.start(await self.claimed(process, most))).result()

    async def get(self, uuid: UUID) -> Transaction:
        """A Transaction as it is now."""
        async with self.house.db.transaction() as conn:
            found = await transactions.get(conn, TENANT, uuid)
        assert found is not None
        return found

    async def statuses(self, uuids: Sequence[UUID]) -> list[str]:
        """Of each its status."""
        return [(await self.get(uuid)).status for uuid in uuids]

    async def errors(self, uuid: UUID) -> list[ErrorEntity]:
        """Its errors."""
        async with self.house.db.transaction() as conn:
            return await task_errors.of(conn, TENANT, uuid)

    async def steps(self, uuid: UUID) -> list[StepRow]:
        """Its steps in the ledger."""
        async with self.house.db.transaction() as conn:
            return await task_steps.of(conn, TENANT, uuid)

    async def stages(self, uuid: UUID) -> list[StageRow]:
        """The log of its stages."""
        async with self.house.db.transaction() as conn:
            return await transactions.stages(conn, TENANT, uuid)

    async def children(self, uuid: UUID) -> list[Transaction]:
        """Its children, in the order of their split."""
        async with self.house.db.transaction() as conn:
            cursor = await conn.execute(
                "select uuid from process_ops.transactions where parent_uuid = %s order by id", [uuid]
            )
            found = [row[0] for row in await cursor.fetchall()]
        return [await self.get(each) for each in found]

    async def rows(self, statement: str, *params: Any) -> list[Any]:
        """What a statement gives, by the owner of the database."""
        async with self.house.db.transaction() as conn:
            await conn.execute("reset role")
            cursor = await conn.execute(statement.encode(), params)
            return await cursor.fetchall() if cursor.description else []


def project(
    *processes: BusinessProcess,
    modules: Sequence[Provider] = (),
    statuses: StatusSet | None = None,
    errors: ErrorPolicy | None = None,
) -> App:
    """An application of processes alone."""
    return App(processes=processes, modules=modules, statuses=statuses, errors=errors)


@asynccontextmanager
async def yard(house: House, app: App, *, works: bool = True) -> AsyncIterator[Yard]:
    """A house of the application, with a worker at work unless told otherwise."""
    other = replace(house, app=app)
    if not works:
        yield Yard(other)
        return
    async with other.worker():
        yield Yard(other)
