"""A post office: mails come in by an input Monitor, are sorted, and go on to a Monitor of waiting Transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
from dishka import Provider, Scope
from temporalio.client import WorkflowHandle

from casework.app import App
from casework.durable.monitor_contracts import MonitorEnd, monitor_id
from casework.durable.process_client import ProcessClient
from casework.errors import BusinessError
from casework.process import INTAKE, BusinessProcess, InputMonitorTask, Transaction
from casework.store.processes import monitors, transactions
from casework.store.processes.monitors import RoundRow
from tests.integration.durable.conftest import TENANT, House, eventually

LETTERS = "create table public.letters (uuid uuid primary key, name text not null)"
RIGHTS = "grant select, insert on public.letters to casework_runtime"
SLOW = {"pollingInterval": "P1D", "sleepTime": "P1D"}
"""A Monitor that polls once and sleeps."""


@dataclass
class Box:
    """The mails that there are; `heard` is what the source was told."""

    mails: list[str] = field(default_factory=list)
    heard: list[tuple[str, str]] = field(default_factory=list)
    away: bool = False


class Mails(InputMonitorTask[str]):
    """Each mail is a row of `letters`, written in the database transaction of its Transaction."""

    def __init__(self, box: Box) -> None:
        self.box = box

    async def query_input_entities(self) -> Sequence[str]:
        if self.box.away:
            raise ConnectionError("the mailbox is away")
        return list(self.box.mails)

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        await self.connection.execute("insert into public.letters values (%s, %s)", (self.transaction_uuid, entity))
        if "bad" in entity:
            raise BusinessError("nothing in it", code="EMPTY")
        return {"mail": entity}

    async def acknowledge_input_entity(self, entity: str) -> None:
        self.box.heard.append(("acknowledged", entity))

    async def reject_input_entity(self, entity: str, error: Exception) -> None:
        self.box.heard.append((f"rejected: {error}", entity))

    def natural_key(self, entity: str) -> str | None:
        return None if entity.startswith("anonymous") else entity

    def business_key(self, entity: str) -> str | None:
        return f"of {entity}"


class Modules(Provider):
    """Provides the box."""

    def __init__(self, box: Box) -> None:
        super().__init__(scope=Scope.APP)
        self.provide(lambda: box, provides=Box)


def office(box: Box, *more: BusinessProcess, json: Mapping[str, Any] | None = None, **process: Any) -> App:
    """An application with the intake of mails; its Monitor polls once, unless `json` says otherwise."""
    intake = replace(INTAKE, monitor=Mails, **process)
    configured = json or {"monitors": [{"monitorClass": "Mails", **SLOW}]}
    return App(processes=[intake, *more], modules=[Modules(box)], monitors=configured)


async def furnished(house: House) -> None:
    """The table of letters."""
    async with await psycopg.AsyncConnection.connect(house.dsn, autocommit=True) as conn:
        await conn.execute(LETTERS)
        await conn.execute(RIGHTS)


async def sql(house: House, statement: str, *params: Any) -> list[Any]:
    """Rows of a statement, as the owner; of one column its values."""
    async with await psycopg.AsyncConnection.connect(house.dsn, autocommit=True) as conn:
        cursor = await conn.execute(statement.encode(), params)
        rows = await cursor.fetchall() if cursor.description else []
    return [row[0] if len(row) == 1 else row for row in rows]


def processes(house: House) -> ProcessClient:
    return ProcessClient(house.runs)


async def rounds(house: House, process: str = "intake") -> list[RoundRow]:
    """Rounds that were told, the newest first."""
    async with house.db.transaction() as conn:
        return await monitors.rounds(conn, TENANT, process)


async def polled(house: House, times: int = 1, process: str = "intake") -> list[RoundRow]:
    """The rounds, once so many have polled."""

    async def look() -> list[RoundRow] | None:
        found = await rounds(house, process)
        return found if sum(each.polled for each in found) >= times else None

    return await eventually(look, f"{process} has polled {times} times", 30)


async def ended(house: House, process: str = "intake") -> MonitorEnd:
    """The end of the Monitor."""
    return await asyncio.wait_for(monitor(house, process).result(), 60)


def monitor(house: House, process: str = "intake") -> WorkflowHandle[Any, MonitorEnd]:
    """The Monitor's Temporal workflow."""
    known = monitor_id(house.settings.temporal.task_queue, TENANT, process)
    return house.client.get_workflow_handle(known, result_type=MonitorEnd)


async def add(
    house: House, count: int = 1, status: str = "INTAKE_COMPLETED", *, business_key: str | None = None, **fields: Any
) -> list[UUID]:
    """Transactions that wait."""
    made = [Transaction(uuid=uuid4(), status=status, start_time=datetime.now(UTC), **fields) for _ in range(count)]
    async with house.db.transaction() as conn:
        for each in made:
            assert await transactions.insert(conn, each, "test", "test", each.start_time, business_key=business_key)
    return [each.uuid for each in made]
