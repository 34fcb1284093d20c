"""Which runs a sweep asks where they stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from casework.durable.activities.sorting import Ages, Findings
from casework.store.sweeping import OpenRow

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=3)


def row(status: str = "AWAITING_REVIEW") -> OpenRow:
    return OpenRow("default", uuid4(), status, 3, LONG_AGO, LONG_AGO, None, "queue")


def findings(*, waiting: int, still: int = 0, doubted: int = 0) -> Findings:
    made = Findings(NOW, Ages(), "queue", {})
    made.waiting = [row() for _ in range(waiting)]
    made.still = [row("RUNNING") for _ in range(still)]
    made.doubted = [row() for _ in range(doubted)]
    return made


def test_a_few_of_those_that_wait_are_asked_and_more_where_one_disagrees() -> None:
    """DA-8. However many wait: three in a sweep, others than those where there is a reason to ask further."""
    made = findings(waiting=10_000)
    chosen = made.chosen(set())
    assert len(chosen) == 3
    further = made.further()
    assert len(further) == 20
    assert not {each.run_id for each in chosen} & {each.run_id for each in further}


def test_those_that_should_be_moving_come_first() -> None:
    """DA-8. Twenty in all; half of them may be doubted already, and busy ones are not asked."""
    made = findings(waiting=50, still=50, doubted=50)
    busy = {each.run_id for each in made.still[:45]}
    chosen = made.chosen(busy)
    assert [each in made.doubted for each in chosen].count(True) == 10
    assert [each in made.still[45:] for each in chosen].count(True) == 5
    assert len(chosen) == 18
    assert len(findings(waiting=50, still=50).chosen(set())) == 20


def test_few_that_wait_are_all_asked() -> None:
    """DA-8. In turn, and none twice."""
    made = findings(waiting=2)
    assert len(made.chosen(set())) == 2
    assert made.further() == []
