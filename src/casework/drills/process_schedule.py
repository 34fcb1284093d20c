"""The recommended schedule on days on which clocks change: the engine tells when it fires, the clock when it ends.

The engine is asked for the times at which it would start the process every twelve hours. From each the clock that
durable Monitors use is followed, wake by wake, to the end of a Monitor that runs for 11 h 59 min.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from casework.drills.process_app import PROCESS
from casework.drills.process_ground import TENANT, ProcessGround
from casework.drills.promises import Report
from casework.durable.client import RunClient
from casework.durable.connection import connect
from casework.durable.process_client import ProcessClient
from casework.process.monitor_clock import MonitorState, Stop, next_wake, polled, wake
from casework.process.monitor_settings import MonitorConfig
from casework.process.schedules import HALF_DAY, HALF_DAY_RUN, half_days

NAME = "schedule"
TITLE = "A Monitor every twelve hours, on days on which clocks change"
LONGEST_GAP = timedelta(minutes=1)
CLOCKS_CHANGE = {
    "Europe/Berlin": (datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)),
    "America/New_York": (datetime(2027, 3, 14, tzinfo=UTC), datetime(2027, 11, 7, tzinfo=UTC)),
}
"""Of each zone the days of one year."""
AROUND = 3 * HALF_DAY
CONFIG = MonitorConfig(timedelta(minutes=3), timedelta(minutes=1), max_running_time=HALF_DAY_RUN)
POLL_TAKES = timedelta(seconds=2)


async def play(ground: ProcessGround, report: Report) -> None:
    """Ask for the times, and follow the Monitors.

    Raises:
        UnreachableError: the engine cannot be reached.
    """
    settings = ground.stack.settings
    client = ProcessClient(RunClient(await connect(settings), settings.temporal.task_queue, settings.histories))
    await client.schedule(TENANT, PROCESS, half_days())
    days = 0
    try:
        for zone, (forward, back) in CLOCKS_CHANGE.items():
            for day in (forward, back):
                starts = await client.starts(TENANT, PROCESS, day - AROUND, day + AROUND + HALF_DAY)
                _judge(report, zone, day, starts)
                days += 1
    finally:
        await client.unschedule(TENANT, PROCESS)
    report.counts.update(days=days, zones=len(CLOCKS_CHANGE))


def _judge(report: Report, zone: str, day: datetime, starts: Sequence[datetime]) -> None:
    """Whether the Monitors of these starts follow each other."""
    ends = [end_of(start) for start in starts]
    gaps = [later - end for end, later in zip(ends, starts[1:], strict=False)]
    offsets = {start.astimezone(ZoneInfo(zone)).utcoffset() for start in starts}
    held = len(starts) >= 2 * AROUND // HALF_DAY and all(timedelta(0) <= gap <= LONGEST_GAP for gap in gaps)
    text = f"{zone}, {day:%d %B %Y}: no overlap, and no gap over one minute, while clocks change"
    report.promise(text, held and len(offsets) == 2, f"{len(starts)} starts, gaps up to {max(gaps, default='none')}")


def end_of(start: datetime) -> datetime:
    """When a Monitor that is started then ends, by the clock of Monitors."""
    state, now = MonitorState(), start
    for _ in itertools.count():
        state, asked = wake(CONFIG, state, now)
        if asked.poll:
            now += POLL_TAKES
            state, stopped = polled(CONFIG, state, now)
        else:
            stopped = asked.stopped
        if stopped is Stop.BY_TIME:
            return now
        now = next_wake(CONFIG, state, now)
    raise AssertionError("unreachable")
