"""An application of two processes, and a door to it; Transactions that wait or have failed, without a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2

from casework.api import create_app
from casework.app import App
from casework.errors import BusinessError
from casework.process import (
    ERRORS,
    BusinessProcess,
    Change,
    ErrorPolicy,
    Finalizer,
    PlainTask,
    ProcessingMonitor,
    TaskContext,
    Transaction,
    bot_task,
)
from casework.process.failures import Spot, error_entity
from casework.process.transactions import failed
from casework.store.processes import task_errors, transactions
from tests.integration.api.conformance import Conformance
from tests.integration.api.conftest import TENANT, Door

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
FAST = {
    "monitors": [
        {"monitorClass": "ProcessingMonitor", "pollingInterval": "PT2S", "sleepTime": "PT1S"},
        {"monitorClass": "ErrorMonitor", "pollingIntervall": "PT2S"},
    ]
}
"""The second object has a field too many."""


@bot_task("price", effects=False)
class Price(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if "amount" not in transaction.data:
            raise BusinessError("the amount is missing", code="NO_AMOUNT")
        return Change(data={"price": transaction.data["amount"] * 2})


@bot_task("pack", effects=False)
class Pack(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"packed": True})


WORK = BusinessProcess(
    name="work",
    monitor=ProcessingMonitor,
    tasks=(Price, Pack),
    finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"),
    tray_size=10,
)
APP = App(processes=[WORK, ERRORS], errors=ErrorPolicy(resume=True), monitors=FAST)


@asynccontextmanager
async def door_to(door: Door, app: App) -> AsyncIterator[Door]:
    """The door of another application on the same servers."""
    made = create_app(door.settings, app, door.db, door.run_client)
    transport = httpx2.ASGITransport(made, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test") as client:
        yield replace(door, app=made, client=client, conformance=Conformance(made.openapi()))


async def put(door: Door, number: int = 1, status: str = "INTAKE_COMPLETED", **more: Any) -> Transaction:
    """A Transaction in the database; the higher the number, the newer."""
    began = BEGAN + timedelta(seconds=number)
    made = Transaction(uuid=uuid4(), status=status, start_time=began, **{"tenant": TENANT, **more})
    async with door.db.transaction() as conn:
        assert await transactions.insert(conn, made, "", "test", made.start_time)
    return made


async def put_failed(door: Door, data: Mapping[str, Any] | None = None) -> UUID:
    """A Transaction that failed at task `price` of `work`, with its error."""
    made = await put(door, data=dict(data or {}), process="work", task="price", status="PROCESSING_IN_PROGRESS")
    at = BEGAN + timedelta(seconds=5)
    error = error_entity(
        BusinessError("the amount is missing", code="NO_AMOUNT"),
        made,
        Spot("work", "price", uuid4()),
        root=made.uuid,
        attempt=1,
        started=at,
        failed=at,
        environment={},
    )
    async with door.db.transaction() as conn:
        await task_errors.record(conn, TENANT, error)
        await transactions.write(conn, made, failed(APP.statuses, made), "work", "error", at)
    return made.uuid
