"""What a tray asks its activities for, and what it knows already."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tests.unit.process.lines import plain, process

from casework.durable.process_contracts import Outcome, TrayReply, TrayStart, TrayWork
from casework.durable.trays import tray_start
from casework.durable.workflows.tray_book import TrayBook
from casework.durable.workflows.tray_calls import TOGETHER, TrayCalls
from casework.process.lines import Line
from casework.process.transactions import Transaction
from casework.process.walk import Work

AT = datetime(2026, 3, 1, tzinfo=UTC)
STATUS = "PROCESSING_IN_PROGRESS"


class Calls(TrayCalls):
    """The first Transaction fails at `b`; those of the second part are to be tried again at `c`, once."""

    def __init__(self, start: TrayStart, book: TrayBook) -> None:
        super().__init__(start, book)
        self.sent: list[tuple[str, int, int]] = []

    async def pause(self, work: Work) -> None:
        """No time passes here."""

    async def execute(self, activity: str, asked: TrayWork, *_: Any, **__: Any) -> Any:
        self.sent += [(asked.station, asked.attempt, len(uuids(asked)))]
        first = self.outcomes(asked.station, asked.attempt, uuids(asked))
        goes_on = asked.ahead and all(each.kind == "passed" for each in first)
        return TrayReply(first, (self.outcomes("c", 1, uuids(asked)),) if goes_on else ())

    def outcomes(self, station: str, attempt: int, those: tuple[UUID, ...]) -> tuple[Outcome, ...]:
        return tuple(Outcome(kind(station, attempt, each.int), (each,), STATUS) for each in those)  # type: ignore[arg-type]


def kind(station: str, attempt: int, number: int) -> str:
    if station == "b" and number == 0:
        return "left"
    return "again" if station == "c" and attempt == 1 and number >= TOGETHER else "passed"


def uuids(work: TrayWork) -> tuple[UUID, ...]:
    return tuple(uuid for each in work.standing for uuid in each.transactions)


async def test_what_is_known_of_one_attempt_is_not_told_of_another() -> None:
    """BP-26. The second part was done ahead in vain; the tray then asks in other parts, and the next attempt is one."""
    line = Line(process(plain("b"), plain("c"), tray_size=2 * TOGETHER))
    claimed = [
        Transaction(uuid=UUID(int=number), status=STATUS, start_time=AT, claim_id=UUID(int=10**6))
        for number in range(2 * TOGETHER)
    ]
    start = tray_start(line, claimed)
    book = TrayBook(start)
    book.enter(start)
    calls = Calls(start, book)
    while isinstance(due := book.due, Work):
        book.take(await calls.work(due))
    at_c = [asked for asked in calls.sent if asked[0] == "c"]
    assert at_c == [("c", 1, TOGETHER), ("c", 1, TOGETHER - 1), ("c", 2, TOGETHER)]
