"""A person sets `stopped` in the row of a Monitor, by SQL: it ends at its next wake, and what comes then waits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from casework.drills.process_app import DONE, PROCESS
from casework.drills.process_ground import TENANT, ProcessGround, until
from casework.drills.promises import Report

NAME = "stop"
TITLE = "A Monitor is stopped by its row"
NUMBER = 5
WITHIN_S = 60.0
AT_ONCE_S = 15.0
"""Seconds within which it must end: it wakes every second, on a machine that may be busy."""
STAYS_S = 4.0
"""Seconds for which it is left stopped: twice what lies between two polls."""
STOP = (
    "update process_ops.monitor set stopped = 1 where tenant = %(tenant)s and monitor_id = %(process)s returning now()"
)
ROUNDS = """
select r.at, r.stopped from process_ops.monitor_rounds r
join process_ops.monitor m on m.tenant = r.tenant and m.uuid = r.monitor_uuid
where m.tenant = %(tenant)s and m.monitor_id = %(process)s and r.at > %(since)s order by r.at desc limit 1
"""
CLAIMS = """
select count(*) filter (where s.at > %(since)s), count(*) from process_ops.transaction_stages s
where s.transaction_uuid = any(%(uuids)s) and s.before = 'NEW'
"""
STATUSES = "select status, count(*) from process_ops.transactions where uuid = any(%(uuids)s) group by 1"


async def play(ground: ProcessGround, report: Report) -> None:
    """Stop it, add what it would take, and start it again.

    Raises:
        BrokenOffError: it does not end, or does not begin again.
    """
    await ground.crew.staff(1)
    [(began,)] = await ground.owner("select now()")
    await ground.start()
    await until(lambda: _round(ground, began), "the Monitor has polled", WITHIN_S)
    since = time.monotonic()
    [(stopped,)] = await ground.owner(STOP, tenant=TENANT, process=PROCESS)

    async def ended() -> Any:
        found = await _round(ground, stopped)
        return found and found[1]

    why = await until(ended, "the Monitor has ended", WITHIN_S)
    seconds = time.monotonic() - since
    report.tell(f"The Monitor ended {seconds:.1f} s after its row was set ({why}).")
    report.promise("It ended by its row, at its next wake", why == "by_row" and seconds < AT_ONCE_S, f"{seconds:.1f} s")
    uuids = await ground.put_in(NAME, NUMBER)
    await asyncio.sleep(STAYS_S)
    [(again,)] = await ground.owner("select now()")
    await ground.start()

    async def through() -> bool:
        return dict(await ground.owner(STATUSES, uuids=uuids)) == {DONE: NUMBER}

    await until(through, "what waited is through", WITHIN_S)
    [(later, claims)] = await ground.owner(CLAIMS, uuids=uuids, since=again)
    report.promise("Nothing was claimed before a person started it again", later == claims == NUMBER, f"{later} later")
    report.counts.update(seconds_to_stop=round(seconds, 1))


async def _round(ground: ProcessGround, since: Any) -> Any:
    found = await ground.owner(ROUNDS, tenant=TENANT, process=PROCESS, since=since)
    return found[0] if found else None
