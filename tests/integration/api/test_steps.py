"""Lists of steps over all runs, and a run's own steps in pages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from casework.api import detail
from casework.projection import RunEntry, StepEntry
from casework.store import ledger
from casework.store.ledger import StepClaim
from tests.integration.api.conftest import TENANT, Door, at, running


async def tried(door: Door, run_id: UUID, number: int, error: str | None = None) -> None:
    """A step in flight; with `error` one whose first attempt failed."""
    path = f"decision.1/look.{number}"
    async with door.db.transaction() as conn:
        await ledger.claim(conn, StepClaim(TENANT, run_id, path, "tool", "look", "1", {}, 1, "decision"))
        if error:
            await ledger.attempt_failed(conn, TENANT, run_id, path, 1, error, 5)


async def all_of(door: Door, path: str, **query: Any) -> list[dict[str, Any]]:
    """The items of all pages, two at a time."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await door.get(path, role="viewer", limit=2, **query, **cursor)).body
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def test_lists_are_paged_and_filtered(door: Door) -> None:
    """DA-30, DA-32. Each step is in its list once, whatever the size of a page; filters narrow it."""
    run_id, other = await door.start(), await door.start({"input": {"to": "Bo", "amount": 1}})
    for each in (run_id, other):
        await door.project(each, running())
    for number in range(1, 6):
        await tried(door, run_id, number, "503" if number % 2 else None)
    await door.project(run_id, *(StepEntry(f"x.{n}", "tool", "gone", "FAILED", at(), error="no") for n in range(5)))
    again = await all_of(door, "/v1/steps", state="retrying")
    assert [step["path"][-1] for step in again] == ["1", "3", "5"]
    assert {step["error"] for step in again} == {"503"}
    assert len(await all_of(door, "/v1/steps", state="started")) == 5
    failed = await all_of(door, "/v1/steps", state="failed")
    assert len({step["step_id"] for step in failed}) == 5
    assert {(step["how"], step["attempt"]) for step in failed} == {("refused", 0)}
    for query in ({"workflow": "none"}, {"run_id": other}, {"kind": "model"}):
        assert await all_of(door, "/v1/steps", state="failed", **query) == []
    assert await all_of(door, "/v1/steps", state="failed", since="2999-01-01T00:00:00Z") == []
    assert (await door.get("/v1/steps", state="failed", tenant="else")).body["items"] == []


async def test_what_a_cancelled_run_left_open_did_not_fail(door: Door) -> None:
    """DA-32. A step that was closed because its run ended is no failed tool."""
    run_id = await door.start()
    await door.project(run_id, running())
    await tried(door, run_id, 1)
    await door.project(run_id, RunEntry(2, "CANCELLED", turn=1, loop_count=1, at=at()))
    assert (await door.get("/v1/steps", state="failed")).body["items"] == []
    assert (await door.get("/v1/steps", state="started")).body["items"] == []


async def test_a_long_run_shows_its_newest_steps_and_pages_all(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-30. The detail is bounded and says that there is more; the run's own list has every step, in order."""
    monkeypatch.setattr(detail, "SHOWN_STEPS", 3)
    run_id = await door.start()
    await door.project(run_id, running())
    for number in range(1, 6):
        await tried(door, run_id, number)
    shown = (await door.get(f"/v1/runs/{run_id}")).body
    assert [step["path"][-1] for step in shown["steps"]] == ["3", "4", "5"]
    assert shown["earlier_steps"] is True
    everyone = await all_of(door, f"/v1/runs/{run_id}/steps")
    assert [step["path"][-1] for step in everyone] == ["1", "2", "3", "4", "5"]
    assert all(len(step["attempts"]) == 1 for step in everyone)


@pytest.mark.parametrize("since", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00"])
async def test_an_instant_that_is_none_in_utc_is_refused(door: Door, since: str) -> None:
    for query in ({"state": "failed"}, {"state": "started"}):
        answer = await door.get("/v1/steps", since=since, **query)
        assert (answer.status, answer.body["errors"][0]["field"]) == (422, "since")
