"""Workers are killed while Transactions are in trays: each passes each task once, and the books balance."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg

from casework.drills.destination import DestinationProcess
from casework.drills.process_app import DESTINATION, DONE, PROCESS, TABLE, TASKS, WAITING
from casework.drills.promises import BrokenOffError, Report
from casework.drills.stack import Crew, LocalStack
from casework.process import Transaction
from casework.rehearsal import Destination
from casework.store.database import Database
from casework.store.processes import audit, transactions
from casework.store.roles import RUNTIME

NAME = "trays"
TITLE = "Workers are killed while Transactions are in trays"
TENANT = "default"
WORKERS = 3
LOOK_EVERY_S = 0.2
STILL_S = 180.0
"""Seconds without any movement after which it is broken off."""
OPEN = "select count(*) from process_ops.transactions where end_time is null"
MOVED = "select count(*) from process_ops.transaction_steps where state = 'COMPLETED'"
STEPS = (
    "select task, transaction_uuid, count(*) from process_ops.transaction_steps where state = 'COMPLETED' group by 1, 2"
)


async def play(stack: LocalStack, report: Report, folder: Path, number: int, kills: int, every_s: float) -> None:
    """Put `number` Transactions in, start the process, and kill a worker `kills` times, one each `every_s` seconds.

    `folder` is there, and takes what the destination leaves.

    Raises:
        BrokenOffError: nothing moves any more, or a server refuses.
    """
    command = (sys.executable, "-m", "casework.drills.process_destination")
    destination = DestinationProcess(Destination(command, (DESTINATION,)), folder, 0.02)
    await destination.start()
    try:
        crew = Crew(stack, {DESTINATION: destination.url})
        uuids = await _put_in(stack, number)
        await crew.staff(WORKERS)
        await _start(stack)
        report.tell(f"{number} Transactions wait, {WORKERS} workers take work.")
        keeping = asyncio.create_task(crew.keep(WORKERS))
        try:
            done = await _through(stack, report, crew, kills, every_s)
        finally:
            keeping.cancel()
        await _judge(stack, report, uuids, destination)
        report.counts.update(kills=done)
        report.promise(f"{kills} workers were killed while Transactions were in trays", done == kills, done)
        report.promise("No worker ended by itself", not crew.quit, crew.quit)
    finally:
        destination.stop()


async def _put_in(stack: LocalStack, number: int) -> list[UUID]:
    await _owner(stack, TABLE)
    uuids = [uuid4() for _ in range(number)]
    opening = Database.open(stack.settings.database.runtime_dsn(), role=RUNTIME, max_size=1, name="casework-drill")
    async with await opening as db, db.transaction() as conn:
        for place, uuid in enumerate(uuids):
            made = Transaction(uuid=uuid, status=WAITING, start_time=datetime.now(UTC), natural_key=f"drill-{place}")
            await transactions.insert(conn, made, PROCESS, "drill", made.start_time)
    return uuids


async def _start(stack: LocalStack) -> None:
    headers = {"Authorization": f"Bearer {stack.token}"}
    async with httpx2.AsyncClient(base_url=stack.api_url, headers=headers, trust_env=False, timeout=40) as client:
        answer = await client.post(f"/v1/processes/{PROCESS}/start", json={})
    if not answer.is_success:
        raise BrokenOffError(f"The API refused to start {PROCESS}: {answer.status_code} {answer.text[:500]}")


async def _through(stack: LocalStack, report: Report, crew: Crew, kills: int, every_s: float) -> int:
    """Kill until it is enough, and wait until all have ended; how many were killed."""
    killed, last_kill, moved, moved_at = 0, time.monotonic(), -1, time.monotonic()
    while True:
        [(is_open,)], [(steps,)] = await _owner(stack, OPEN), await _owner(stack, MOVED)
        if not is_open:
            return killed
        now = time.monotonic()
        if steps != moved:
            moved, moved_at = steps, now
        if now - moved_at > STILL_S:
            raise BrokenOffError(f"Nothing has moved for {STILL_S:g} s, and {is_open} Transactions are open.")
        if killed < kills and steps and now - last_kill >= every_s and (pid := crew.kill_ready()):
            killed, last_kill = killed + 1, now
            report.tell(f"Killed worker {pid}: {steps} steps COMPLETED, {is_open} Transactions open.")
        await asyncio.sleep(LOOK_EVERY_S)


async def _judge(stack: LocalStack, report: Report, uuids: list[UUID], destination: DestinationProcess) -> None:
    statuses = dict(await _owner(stack, "select status, count(*) from process_ops.transactions group by 1"))
    report.promise("Every Transaction is COMPLETED", statuses == {DONE: len(uuids)}, statuses)
    once = {(task, uuid): 1 for task in TASKS for uuid in uuids}
    steps = {(task, uuid): number for task, uuid, number in await _owner(stack, STEPS)}
    report.promise("Every Transaction has one COMPLETED step of every task", steps == once, len(steps))
    rows = Counter((task, uuid) for task, uuid in await _owner(stack, "select task, uuid from process_drill"))
    own = {each: 1 for each in once if each[0] != "notify"}
    report.promise("Every Transaction has one row of each transactional task", dict(rows) == own, rows.total())
    keys = "select data ->> 'key' from process_ops.transactions"
    counts, kept = await destination.counts(), {key for (key,) in await _owner(stack, keys)}
    effects = set(counts.effects) == kept and len(kept) == len(uuids) and not counts.duplicates
    report.promise("The destination has one effect for each Transaction", effects, len(counts.effects))
    opening = Database.open(stack.settings.database.runtime_dsn(), role=RUNTIME, max_size=1, name="casework-drill")
    async with await opening as db, db.transaction() as conn:
        books = await audit.books(conn, TENANT)
    told = [f"{each.check.of} {each.id}: {each.check.fault}: {each.found}" for each in books.faults[:5]]
    report.promise("The books balance", books.balance, told)
    report.counts.update(transactions=len(uuids), calls=sum(counts.calls.values()), effects=len(counts.effects))


async def _owner(stack: LocalStack, statement: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(stack.admin_dsn) as conn:
        cursor = await conn.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []
