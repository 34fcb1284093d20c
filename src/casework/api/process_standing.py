"""Where processes and their Monitors stand: their lines, rows, configuration in force, and what the engine says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from casework.api import process_render as render
from casework.api.access import Caller
from casework.api.render import when
from casework.api.services import Services
from casework.durable.monitor_configuration import json_monitors
from casework.durable.process_client import ProcessStanding
from casework.errors import NotFoundError, UnreachableError
from casework.graph.problems import unknown
from casework.process.lines import Line
from casework.process.monitor_settings import SLEEP_FLOORS, Effective, JsonMonitors, effective
from casework.store.database import Connection
from casework.store.processes import lists, monitors, waiting_parents
from casework.store.processes.lists import Count
from casework.store.processes.monitors import MonitorRow
from casework.values import Plain

WINDOW = timedelta(days=1)
"""How far back ended Transactions are counted."""


def line_of(services: Services, name: str) -> Line:
    """The line of a process.

    Raises:
        NotFoundError: the application has none of that name.
    """
    lines = services.app.lines()
    if name not in lines:
        raise NotFoundError(f"In this application {unknown('process', name, lines)}")
    return lines[name]


async def of_monitors(services: Services, caller: Caller, lines: Iterable[Line]) -> list[dict[str, Plain]]:
    """`process_shapes.Monitor` for each line."""
    chosen = list(lines)
    found, rows = await _rows(services, caller.tenant, chosen)
    words = await asyncio.gather(*(said(services, caller.tenant, line.process.name) for line in chosen))
    return [
        render.monitor(line, row, word.monitor if word else None, config, reached=word is not None)
        for line, row, config, word in zip(chosen, rows, found, words, strict=True)
    ]


async def of_processes(services: Services, caller: Caller) -> dict[str, Plain]:
    """`process_shapes.ProcessList`."""
    lines = services.app.lines()
    told = await of_monitors(services, caller, lines.values())
    async with services.db.transaction() as conn:
        counts = await _counts(conn, caller.tenant)
    items = [
        render.process(line, [each for each in counts if each.process == name], of_monitor)
        for (name, line), of_monitor in zip(lines.items(), told, strict=True)
    ]
    return {"items": items, "elsewhere": [render.count(each) for each in counts if each.process not in lines]}


async def of_process(services: Services, caller: Caller, line: Line) -> dict[str, Plain]:
    """`process_shapes.ProcessDetail`."""
    name = line.process.name
    word = await said(services, caller.tenant, name)
    (config,), (row,) = await _rows(services, caller.tenant, [line])
    async with services.db.transaction() as conn:  # last: what a poll that is told has claimed is counted
        counts = [each for each in await _counts(conn, caller.tenant) if each.process == name]
        waits = await waiting_parents.of_process(conn, caller.tenant, name)
    life = word.monitor if word else None
    of_monitor = render.monitor(line, row, life, config, reached=word is not None)
    return {
        **render.process(line, counts, of_monitor),
        "waits": {"transactions": waits.transactions, "since": when(waits.since)},
        "schedule": render.schedule(word.schedule if word else None, line.process.schedule),
    }


async def said(services: Services, tenant: str, name: str) -> ProcessStanding | None:
    """What the engine knows of a process; None where it cannot be reached."""
    try:
        return await services.processes.describe(tenant, name)
    except UnreachableError:
        return None


async def _counts(conn: Connection, tenant: str) -> list[Count]:
    return await lists.counts(conn, tenant, datetime.now(UTC) - WINDOW)


async def _rows(services: Services, tenant: str, lines: list[Line]) -> tuple[list[Effective], list[MonitorRow | None]]:
    """For each line the configuration in force, and the row of its Monitor."""
    json = json_monitors(services.app, services.settings)
    found: list[Effective] = []
    rows: list[MonitorRow | None] = []
    async with services.db.transaction() as conn:
        for line in lines:
            found.append(await _in_force(services, conn, tenant, line.process.monitor.monitor_class(), json))
            rows.append(await monitors.get(conn, tenant, line.process.name))
    return found, rows


async def in_force(services: Services, conn: Connection, tenant: str, monitor_class: str) -> Effective:
    """The configuration of a Monitor class at its next wake."""
    return await _in_force(services, conn, tenant, monitor_class, json_monitors(services.app, services.settings))


async def _in_force(
    services: Services, conn: Connection, tenant: str, monitor_class: str, json: JsonMonitors
) -> Effective:
    row = await monitors.configuration(conn, tenant, monitor_class)
    floor = SLEEP_FLOORS[services.settings.processes.sleep_floor]
    return effective(monitor_class, row=row, json=json, floor=floor)


def class_of(services: Services, name: str) -> str:
    """The name of a Monitor class that heads a process.

    Raises:
        NotFoundError: the application has none of that name.
    """
    known = sorted({line.process.monitor.monitor_class() for line in services.app.lines().values()})
    if name not in known:
        raise NotFoundError(f"In this application {unknown('Monitor class', name, known)}")
    return name
