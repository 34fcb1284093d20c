"""Workers are killed while Transactions are in trays: each passes each task once, and the books balance."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from casework.drills.process_app import DONE, TASKS
from casework.drills.process_ground import LOOK_EVERY_S, ProcessGround
from casework.drills.promises import BrokenOffError, Report

NAME = "trays"
TITLE = "Workers are killed while Transactions are in trays"
WORKERS = 3
STILL_S = 180.0
"""Seconds without any movement after which it is broken off."""
OPEN = "select count(*) from process_ops.transactions where uuid = any(%(uuids)s) and end_time is null"
MOVED = """
select count(*) from process_ops.transaction_steps
where state = 'COMPLETED' and transaction_uuid = any(%(uuids)s)
"""
STATUSES = "select status, count(*) from process_ops.transactions where uuid = any(%(uuids)s) group by 1"
STEPS = """
select task, transaction_uuid, count(*) from process_ops.transaction_steps
where state = 'COMPLETED' and transaction_uuid = any(%(uuids)s) group by 1, 2
"""
ROWS = "select task, uuid from process_drill where uuid = any(%(uuids)s)"
KEYS = "select data ->> 'key' from process_ops.transactions where uuid = any(%(uuids)s)"


async def play(ground: ProcessGround, report: Report, number: int, kills: int, every_s: float) -> None:
    """Put `number` Transactions in, start the process, and kill a worker `kills` times, evenly over the way.

    Between two kills lie at least `every_s` seconds.

    Raises:
        BrokenOffError: nothing moves any more, or a server refuses.
    """
    uuids = await ground.put_in(NAME, number)
    await ground.crew.staff(WORKERS)
    await ground.start()
    report.tell(f"{number} Transactions wait, {WORKERS} workers take work.")
    keeping = asyncio.create_task(ground.crew.keep(WORKERS))
    try:
        done = await _through(ground, report, uuids, kills, every_s)
    finally:
        keeping.cancel()
    await _judge(ground, report, uuids)
    report.counts.update(kills=done)
    report.promise(f"{kills} workers were killed while Transactions were in trays", done == kills, done)
    report.promise("No worker ended by itself", not ground.crew.quit, ground.crew.quit)


async def _through(ground: ProcessGround, report: Report, uuids: Sequence[UUID], kills: int, every_s: float) -> int:
    """Kill until it is enough, and wait until all have ended; how many were killed."""
    killed, last_kill, moved, moved_at = 0, time.monotonic(), -1, time.monotonic()
    while True:
        [(is_open,)], [(steps,)] = await ground.owner(OPEN, uuids=uuids), await ground.owner(MOVED, uuids=uuids)
        if not is_open:
            return killed
        now = time.monotonic()
        if steps != moved:
            moved, moved_at = steps, now
        if now - moved_at > STILL_S:
            raise BrokenOffError(f"Nothing has moved for {STILL_S:g} s, and {is_open} Transactions are open.")
        due = killed < kills and steps >= len(TASKS) * len(uuids) * (killed + 0.5) / kills
        if due and now - last_kill >= every_s and (pid := ground.crew.kill_ready()):
            killed, last_kill = killed + 1, now
            report.tell(f"Killed worker {pid}: {steps} steps COMPLETED, {is_open} Transactions open.")
        await asyncio.sleep(LOOK_EVERY_S)


async def _judge(ground: ProcessGround, report: Report, uuids: Sequence[UUID]) -> None:
    statuses = dict(await ground.owner(STATUSES, uuids=uuids))
    report.promise("Every Transaction is COMPLETED", statuses == {DONE: len(uuids)}, statuses)
    once = {(task, uuid): 1 for task in TASKS for uuid in uuids}
    steps = {(task, uuid): number for task, uuid, number in await ground.owner(STEPS, uuids=uuids)}
    report.promise("Every Transaction has one COMPLETED step of every task", steps == once, len(steps))
    rows = Counter((task, uuid) for task, uuid in await ground.owner(ROWS, uuids=uuids))
    own = {each: 1 for each in once if each[0] != "notify"}
    report.promise("Every Transaction has one row of each transactional task", dict(rows) == own, rows.total())
    counts = await ground.destination.counts()
    kept = {key for (key,) in await ground.owner(KEYS, uuids=uuids)}
    effects = set(counts.effects) == kept and len(kept) == len(uuids) and not counts.duplicates
    report.promise("The destination has one effect for each Transaction", effects, len(counts.effects))
    await ground.balance(report)
    report.counts.update(transactions=len(uuids), calls=sum(counts.calls.values()), effects=len(counts.effects))
