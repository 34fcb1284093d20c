"""Figures over HTTP: windows, series, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from casework.projection import RunEntry
from casework.store import ledger
from tests.integration.api.conftest import Door, asked, at, decided, running
from tests.integration.store.cases import PATH, done, tool_claim


async def one_of_each(door: Door) -> None:
    """A run that was approved after one tool call, and one that waits for a person."""
    for ends in (True, False):
        run_id = await door.start()
        await door.project(run_id, running())
        async with door.db.transaction() as conn:
            await ledger.claim(conn, tool_claim(run_id))
        async with door.db.transaction() as conn:
            await ledger.commit(conn, done(run_id, 1, PATH, tokens_in=40, tokens_out=2, cost=Decimal("0.0300")))
        await door.project(run_id, *asked(run_id))
        if ends:
            await door.project(run_id, decided(run_id, "approve", outcome="approved"))
            await door.project(run_id, RunEntry(3, "COMPLETED", 1, 1, at(), outcome="approved"))


async def test_open_and_ended_runs_are_counted_and_means_are_of_the_ended(door: Door) -> None:
    """DA-29. DA-31. DA-50. Tokens and money of all, and of each run that ended."""
    await one_of_each(door)
    (row,) = (await door.get("/v1/metrics/workflows")).body["items"]
    states = ("pending", "running", "awaiting_review", "completed", "failed", "cancelled")
    assert [row[name] for name in states] == [0, 0, 1, 1, 0, 0]
    assert (row["runs"], row["tool_calls"], row["attempts_completed"], row["tokens_in"]) == (2, 2, 2, 80)
    assert (row["cost"], row["mean_cost"], row["mean_tokens_in"]) == (Decimal("0.06"), Decimal("0.03"), 40)
    assert (row["reviews_asked"], row["reviews_decided"], row["reviews_closed"]) == (2, 1, 0)
    assert (row["outcomes"], row["begin"]) == ({"approved": 1}, None)


@pytest.mark.parametrize("by", ["hour", "day"])
async def test_series_by_hour_or_day(door: Door, by: str) -> None:
    """DA-31. One item for each hour or day of acceptance."""
    await one_of_each(door)
    items = (await door.get("/v1/metrics/workflows", by=by)).body["items"]
    assert sum(item["runs"] for item in items) == 2
    for item in items:
        begin = datetime.fromisoformat(item["begin"])
        assert (begin.minute, begin.second) == (0, 0)
        assert by == "hour" or begin.hour == 0
        assert timedelta() <= datetime.now(UTC) - begin < timedelta(days=2)


async def test_window_begins_with_its_hour_and_the_answer_says_so(door: Door) -> None:
    answer = (await door.get("/v1/metrics/workflows", since="2026-03-01T10:59:00+01:00")).body
    assert answer["since"] == "2026-03-01T09:00:00.000000+00:00"


@pytest.mark.parametrize(
    "query",
    [
        {"by": "week"},
        {"by": "hour", "since": "2020-01-01T00:00:00Z"},
        {"by": "day", "since": "1999-01-01T00:00:00Z"},
        {"since": "0001-01-01T00:00:00+14:00"},
        {"since": "9999-12-31T23:59:59-14:00"},
        {"since": "yesterday"},
    ],
)
async def test_windows_that_cannot_be_are_refused_by_field(door: Door, query: dict[str, str]) -> None:
    answer = await door.get("/v1/metrics/workflows", **query)
    assert answer.status == 422
    assert answer.body["errors"][0]["field"] in {"by", "since"}


async def test_figures_are_of_the_tokens_own_tenant(door: Door) -> None:
    await one_of_each(door)
    assert (await door.get("/v1/metrics/workflows", tenant="other")).body["items"] == []
