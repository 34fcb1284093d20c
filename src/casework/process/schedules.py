"""When processes start: data that maps field by field onto the engine's schedules. Nothing here fires anything.

An interval is absolute time, counted from the epoch: days on which clocks change do not touch it. A cron expression is
local time of a named zone, so such days make one distance an hour longer or shorter. Where processes are to follow each
other without overlap and without a gap, take intervals (`half_days`, `staggered`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from casework.errors import ProcessDeclarationError
from casework.values import content_hash

_ZONE = re.compile(r"UTC|[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+")
_CRON = re.compile(
    r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+(?: +[0-9A-Za-z*/,?-]+){4}"
)
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Overlap(StrEnum):
    """What a start does while the one before still runs; the names are the engine's."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    TERMINATE_OTHER = "terminate_other"
    ALLOW_ALL = "allow_all"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When a process starts: by `cron` in `zone`, or `every` so often, shifted by `offset`.

    Raises:
        ProcessDeclarationError: a field does not hold, or two do not go together.
    """

    cron: tuple[str, ...] = ()
    """Expressions of five fields, or names like `@daily`; it starts at each time that one of them gives."""
    zone: str | None = None
    """IANA name of the zone in which `cron` is read; UTC unless given."""
    every: timedelta | None = None
    offset: timedelta = timedelta(0)
    """From 0, less than `every`."""
    jitter: timedelta = timedelta(0)
    """Longest random delay of a start."""
    overlap: Overlap = Overlap.SKIP
    catch_up: timedelta = timedelta(hours=1)
    """How long after its time a start is still made, when the engine was down at it."""

    def __post_init__(self) -> None:
        if bool(self.cron) == (self.every is not None):
            raise _refused("cron", self.cron, "Give either `cron` or `every`")
        if self.every is None:
            self._check_cron()
        else:
            self._check_interval(self.every)
        if self.jitter < timedelta(0):
            raise _refused("jitter", self.jitter, "Give a duration from 0")
        if self.catch_up < timedelta(seconds=10):
            raise _refused("catch_up", self.catch_up, "Give at least 10 seconds, which is the engine's least")

    def _check_cron(self) -> None:
        for each in self.cron:
            if not _CRON.fullmatch(each.strip()):
                raise _refused("cron", each, "Write five fields, as in '30 6 * * 1-5', and the zone in `zone`")
        if self.zone is not None and not _ZONE.fullmatch(self.zone):
            raise _refused("zone", self.zone, "Write the name of a zone, as in Europe/Berlin, or UTC")
        if self.offset:
            raise _refused("offset", self.offset, "It belongs to `every`; write the time into `cron`")

    def _check_interval(self, every: timedelta) -> None:
        for field, value in (("every", every), ("offset", self.offset)):
            if value % _SECOND:
                raise _refused(field, value, "Give whole seconds; the engine knows no finer times")
        if every < _SECOND:
            raise _refused("every", every, "Give at least a second")
        if self.zone is not None:
            raise _refused(
                "zone", self.zone, "An interval is absolute time and has no zone; leave it out, or use `cron`"
            )
        if not timedelta(0) <= self.offset < every:
            raise _refused("offset", self.offset, f"Give a duration from 0, less than `every` ({every})")
        if self.jitter >= every:
            raise _refused("jitter", self.jitter, f"Give less than `every` ({every})")

    def digest(self) -> str:
        """What tells it from others."""
        durations = (self.every, self.offset, self.jitter, self.catch_up)
        times = [None if each is None else each // _MILLISECOND for each in durations]
        return content_hash([list(self.cron), self.zone, str(self.overlap), *times])

    def starts(self, after: datetime, count: int) -> list[datetime]:
        """The next `count` starts of an interval, at or after an instant, in UTC.

        Raises:
            ProcessDeclarationError: this is no interval; the times of a cron expression are the engine's to tell.
        """
        if self.every is None:
            raise _refused("cron", self.cron, "Ask the engine for the times of a cron expression")
        first = -(-(after - _EPOCH - self.offset) // self.every)
        return [_EPOCH + self.offset + number * self.every for number in range(first, first + count)]


def staggered(count: int, every: timedelta) -> tuple[Schedule, ...]:
    """Schedules for `count` processes, each every `every`: the i-th, from 0, starts at i/count of it, in whole seconds.

    Raises:
        ProcessDeclarationError: `count` is below 1, or they would lie less than a second apart.
    """
    if count < 1:
        raise _refused("count", count, "Give at least 1")
    if every / count < _SECOND:
        raise _refused("every", every, f"{count} processes would start less than a second apart")
    return tuple(Schedule(every=every, offset=number * every // count // _SECOND * _SECOND) for number in range(count))


HALF_DAY = timedelta(hours=12)
HALF_DAY_RUN = timedelta(hours=11, minutes=59)
"""`maxRunningTime` of the Monitor of a process that `half_days` starts: it ends a minute before the next begins."""


def half_days(offset: timedelta = timedelta(0)) -> Schedule:
    """The recommended pattern: a start every 12 hours, for a Monitor that ends after 11 h 59 min (HALF_DAY_RUN).

    A Monitor that is late, since the engine was down or its last poll took long, holds the next start back until it
    ends, and no start is lost.
    """
    return replace(Schedule(every=HALF_DAY, offset=offset), overlap=Overlap.BUFFER_ONE, catch_up=HALF_DAY)


def _refused(field: str, value: object, remedy: str) -> ProcessDeclarationError:
    return ProcessDeclarationError(f"Schedule: {field} is {value!s:.100}. {remedy}.", field=field)
