"""Reading: pages, a run while it goes on, events, transcript, metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.projection import ContextEntry, EventEntry, LogEntry, MessageEntry, RunEntry
from casework.store import ledger
from tests.integration.api.conftest import GOOD, TENANT, Door, asked, at, decided, review_id_of, running


async def pages(door: Door, path: str, **query: Any) -> list[list[str]]:
    """The ids of each page, following the cursors."""
    found: list[list[str]] = []
    cursor = None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        body = (await door.get(path, **query, **more)).body
        found.append([item.get("review_id") or item["run_id"] for item in body["items"]])
        cursor = body["next_cursor"]
        if cursor is None:
            return found


async def test_runs_are_listed_newest_first_page_by_page_without_gap_or_repeat(door: Door) -> None:
    """DA-30, DA-31. Keyset paging: a run that starts between two pages moves nothing."""
    ids = [str(await door.start()) for _ in range(5)]
    first = (await door.get("/v1/runs", limit=2)).body
    late = str(await door.start())
    second = (await door.get("/v1/runs", limit=2, cursor=first["next_cursor"])).body
    third = (await door.get("/v1/runs", limit=2, cursor=second["next_cursor"])).body
    seen = [run["run_id"] for page in (first, second, third) for run in page["items"]]
    assert seen == list(reversed(ids))
    assert third["next_cursor"] is None
    assert (await pages(door, "/v1/runs", limit=200)) == [[late, *reversed(ids)]]


async def test_runs_are_filtered_by_user_state_and_workflow(door: Door) -> None:
    """DA-30. Cases by user and state."""
    one = await door.start({"on_behalf_of": "ann"})
    two = await door.start({"on_behalf_of": "bob"})
    await door.project(two, running())
    assert await pages(door, "/v1/runs", user="ann") == [[str(one)]]
    assert await pages(door, "/v1/runs", status="RUNNING") == [[str(two)]]
    assert await pages(door, "/v1/runs", user="ann", status="RUNNING") == [[]]
    assert await pages(door, "/v1/runs", workflow="letter", limit=1) == [[str(two)], [str(one)]]
    assert await pages(door, "/v1/runs", workflow="other") == [[]]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 201},
        {"limit": "many"},
        {"cursor": "x"},
        {"cursor": "%00"},
        {"status": "DONE"},
        {"user": "a\x00b"},
        {"user": ""},
    ],
)
async def test_a_query_that_does_not_hold_is_422_with_the_field(door: Door, query: dict[str, Any]) -> None:
    answer = await door.get("/v1/runs", **query)
    assert answer.status == 422
    assert {error["field"] for error in answer.body["errors"]} == set(query)


async def step(door: Door, run_id: UUID, name: str, path: str, outcome: str) -> None:
    """A ledger row of a tool as an activity leaves it: committed, failed once, or lost with its worker."""
    claim = ledger.StepClaim(TENANT, run_id, path, "tool", name, "1", {"applicant_id": "A"}, 1, "underwrite")
    async with door.db.transaction() as conn:
        attempt = (await ledger.claim(conn, claim)).attempt
        if outcome == "COMPLETED":
            done = ledger.StepCommit(
                TENANT, run_id, path, attempt, "COMPLETED", {"score": 665, "ratio": Decimal("37.90")}, None, 12
            )
            await ledger.commit(conn, done)
        if outcome == "FAILED":
            await ledger.attempt_failed(conn, TENANT, run_id, path, attempt, "bureau answered 503", 40)


async def test_evidence_shows_while_the_run_goes_on_and_waits_are_told_apart(door: Door) -> None:
    """DA-4, DA-32. One collects evidence, one awaits review, one retries a failed tool, at one moment."""
    collecting, waiting, retrying, lost = [await door.start() for _ in range(4)]
    for run_id in (collecting, waiting, retrying, lost):
        await door.project(run_id, running())
    await step(door, collecting, "credit_check", "underwrite.1/exchange.1/credit_check.1", "COMPLETED")
    await step(door, collecting, "income_verification", "underwrite.1/exchange.1/income_verification.1", "STARTED")
    await door.project(waiting, *asked(waiting))
    await step(door, retrying, "credit_check", "underwrite.1/exchange.1/credit_check.1", "FAILED")
    await step(door, lost, "credit_check", "underwrite.1/exchange.1/credit_check.1", "STARTED")
    await step(door, lost, "credit_check", "underwrite.1/exchange.1/credit_check.1", "STARTED")

    seen = {}
    for name, run_id in (("c", collecting), ("w", waiting), ("r", retrying), ("l", lost)):
        seen[name] = (await door.get(f"/v1/runs/{run_id}", role="viewer")).body
    assert {name: run["doing"]["kind"] for name, run in seen.items()} == {
        "c": "working",
        "w": "waiting_for_person",
        "r": "retrying",
        "l": "retrying",
    }
    assert seen["c"]["evidence"] == {"credit_check": {"score": 665, "ratio": Decimal("37.90")}}
    assert str(seen["c"]["evidence"]["credit_check"]["ratio"]) == "37.90"
    assert "income_verification under way" in seen["c"]["doing"]["text"]
    assert "bureau answered 503" in seen["r"]["doing"]["text"]
    assert [one["outcome"] for one in seen["r"]["steps"][0]["attempts"]] == ["FAILED"]
    assert [one["outcome"] for one in seen["l"]["steps"][0]["attempts"]] == ["LOST", None]
    assert seen["w"]["review"]["status"] == "pending"
    limits = {one["operation"]: one["attempts"] for one in seen["r"]["retry_policies"]}
    assert limits == {"model": 4, "tool": 3, "store": 5, "segment": 3}, "DA-18. Retry policies are shown on the run"


async def test_policy_stands_beside_the_models_word(door: Door) -> None:
    """DA-9. The model may disagree; both are stored and shown."""
    run_id = await door.start()
    await door.project(run_id, running(recommendation={"recommendation": "approve"}))
    path = "underwrite.1/exchange.3/policy_lookup.1"
    claim = ledger.StepClaim(TENANT, run_id, path, "tool", "policy_lookup", "1", {}, 1, "underwrite")
    async with door.db.transaction() as conn:
        attempt = (await ledger.claim(conn, claim)).attempt
        result = {"recommendation": "refer", "rules": []}
        await ledger.commit(conn, ledger.StepCommit(TENANT, run_id, path, attempt, "COMPLETED", result, None, 1))
    policy = (await door.get(f"/v1/runs/{run_id}")).body["policy"]
    assert policy == {"evaluation": result, "model": {"recommendation": "approve"}}


async def test_a_failed_run_says_why(door: Door) -> None:
    run_id = await door.start()
    await door.project(
        run_id,
        running(),
        RunEntry(2, "FAILED", turn=1, current_node="decision", loop_count=1, at=at(), failure="no policy row"),
    )
    run = (await door.get(f"/v1/runs/{run_id}")).body
    assert (run["status"], run["failure"], run["doing"]["kind"]) == ("FAILED", "no policy row", "ended")
    assert run["ended_at"] is not None


async def test_events_are_read_on_from_the_last_number(door: Door) -> None:
    """DA-28. A reader that resumes after `seq` misses nothing and sees nothing twice."""
    run_id = await door.start()
    entries = [EventEntry(f"n.{i}", "tick", at(), {"i": i}) for i in range(7)]
    await door.project(run_id, *entries, *entries)
    seen: list[int] = []
    while page := (await door.get(f"/v1/runs/{run_id}/events", after=len(seen), limit=3)).body["items"]:
        seen += [event["seq"] for event in page]
    assert seen == list(range(1, 8))
    assert (await door.get(f"/v1/runs/{run_id}/events", after=2**62 + 1)).status == 422


async def test_the_transcript_is_read_in_order(door: Door) -> None:
    run_id = await door.start()
    await door.project(
        run_id,
        MessageEntry("a.1", 1, "underwriter", "user", "Underwrite.", at()),
        MessageEntry("a.2", 2, "underwriter", "assistant", "Refer.", at()),
        ContextEntry("a.2", "recommendation", 1, {"recommendation": "refer"}, at()),
        LogEntry("a.2", "a", "INFO", "said", at()),
    )
    items = (await door.get(f"/v1/runs/{run_id}/messages")).body["items"]
    assert [(item["position"], item["role"], item["content"]) for item in items] == [
        (1, "user", "Underwrite."),
        (2, "assistant", "Refer."),
    ]
    assert (await door.get(f"/v1/runs/{run_id}/messages", after=1)).body["items"] == items[1:]
    assert (await door.get(f"/v1/runs/{run_id}")).body["context"] == {"recommendation": {"recommendation": "refer"}}


@pytest.mark.parametrize("path", ["/v1/runs/{}", "/v1/runs/{}/events", "/v1/runs/{}/messages", "/v1/reviews/{}"])
async def test_what_does_not_exist_is_404_and_what_is_no_id_is_422(door: Door, path: str) -> None:
    assert (await door.get(path.format(uuid4()))).status == 404
    assert (await door.get(path.format("seven"))).status == 422


async def test_a_workflow_tells_its_input_and_its_decisions(door: Door) -> None:
    assert (await door.get("/v1/workflows")).body == {"items": [{"name": "letter", "version": 1}]}
    body = (await door.get("/v1/workflows/letter")).body
    assert body["input_schema"]["required"] == ["to", "amount"]
    assert body["nodes"] == [
        {"id": "decision", "type": "HUMAN_APPROVAL", "decisions": ["approve", "reject", "more_info"]}
    ]
    assert "There are: letter" in (await door.get("/v1/workflows/lettre")).body["detail"]


async def test_metrics_count_runs_by_state_and_outcome_and_retries_by_tool(door: Door) -> None:
    """DA-31. Workflow metrics and retry metrics."""
    one, two, three = [await door.start() for _ in range(3)]
    await door.project(one, running())
    await step(door, one, "credit_check", "underwrite.1/exchange.1/credit_check.1", "FAILED")
    await door.project(two, running(), *asked(two))
    await door.project(
        three,
        running(),
        *asked(three),
        decided(three, "approve", outcome="approved"),
        RunEntry(3, "COMPLETED", turn=1, current_node="decision", loop_count=1, at=at(), outcome="approved"),
    )
    (row,) = (await door.get("/v1/metrics/workflows")).body["items"]
    counts = ("runs", "pending", "running", "awaiting_review", "completed", "failed", "cancelled")
    assert [row[name] for name in counts] == [3, 0, 1, 1, 1, 0, 0]
    assert row["outcomes"] == {"approved": 1}
    (retry,) = (await door.get("/v1/metrics/retries")).body["items"]
    assert (retry["name"], retry["failed"], retry["retrying"]) == ("credit_check", 1, 1)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert (await door.get("/v1/metrics/workflows", since=later)).body["items"] == []
    assert (await door.get("/v1/metrics/workflows", since="2026-01-01T00:00:00")).status == 422


async def test_reviews_wait_oldest_first(door: Door) -> None:
    """DA-30. Reviews waiting for a person, oldest first; those decided or closed are gone."""
    runs = [await door.start() for _ in range(3)]
    for run_id in runs:
        await door.project(run_id, running(), *asked(run_id, recommendation={"recommendation": "refer"}))
    expected = [str(review_id_of(run_id)) for run_id in runs]
    assert await pages(door, "/v1/reviews", limit=1) == [[one] for one in expected]
    await door.project(runs[0], decided(runs[0], "more_info"))
    assert await pages(door, "/v1/reviews", limit=2) == [expected[1:]]
    (item,) = (await door.get("/v1/reviews", limit=1, role="viewer")).body["items"]
    assert (item["workflow"], item["user"], item["recommendation"]) == (
        "letter",
        "admin-1",
        {"recommendation": "refer"},
    )
    assert GOOD["to"] == "Ada"


async def test_a_run_that_waits_for_a_run_below_says_so(door: Door) -> None:
    """DA-32. It is under way, and names the run that it waits for; afterwards it does not."""
    run_id, below = await door.start(), str(uuid4())
    began = EventEntry("talk.1", "agent.sub_run_started", at(), {"run_id": below, "workflow": "letter"})
    await door.project(run_id, running(), began)
    doing = (await door.get(f"/v1/runs/{run_id}")).body["doing"]
    assert (doing["kind"], doing["steps"]) == ("working", ["talk.1"])
    assert doing["text"] == f"talk.1 waits for run {below} of letter"
    await door.project(run_id, EventEntry("talk.1", "agent.sub_run_ended", at(), {"run_id": below}))
    assert (await door.get(f"/v1/runs/{run_id}")).body["doing"]["text"] == "between two steps"
