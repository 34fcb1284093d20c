"""Forking over HTTP: what the answer says, what is refused and how, and the link on both runs."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.projection import EventEntry, RunEntry
from casework.store import projection, workflows
from casework.store.database import Connection
from tests.integration.api.conftest import GOOD, LETTER, TENANT, Door, asked, at, decided, publish, running
from tests.integration.durable.conftest import eventually


def deep(levels: int) -> Any:
    """A value that is nested so deep."""
    return [] if levels == 1 else [deep(levels - 1)]


async def answered(door: Door) -> UUID:
    """A run whose first question was answered with more_info, and whose second is open."""
    run_id = await door.start()
    first, second = "decision.1", "decision.2"
    await door.project(run_id, EventEntry(first, "agent.node_started", at()), *asked(run_id))
    await door.project(
        run_id,
        decided(run_id, "more_info"),
        EventEntry(first, "agent.node_completed", at()),
        running(3),
        EventEntry(second, "agent.node_started", at()),
        *asked(run_id, 2, version=4),
    )
    return run_id


async def test_a_fork_is_a_run_that_says_where_it_is_from(door: Door) -> None:
    """AW-15. 202 with the new id at once; the link is told on both."""
    run_id = await answered(door)
    answer = await door.post(f"/v1/runs/{run_id}/fork", {"step": "decision.2"}, role="operator", name="olga")
    assert answer.status == 202
    made = answer.body
    assert made["run_id"] != str(run_id)
    assert answer.headers["location"] == f"/v1/runs/{made['run_id']}"
    assert (made["status"], made["visit"], made["kept_steps"], made["anew"]) == ("PENDING", "decision.2", 0, None)
    assert (made["actor"], made["user"]) == ("olga", "admin-1")
    assert made["forked_from"] == {"run_id": str(run_id), "path": "decision.2"}
    source, fork = [(await door.get(f"/v1/runs/{each}")).body for each in (run_id, made["run_id"])]
    assert [each["run_id"] for each in source["forks"]] == [made["run_id"]]
    assert (source["forked_from"], fork["forks"], fork["forked_from"]["run_id"]) == (None, [], str(run_id))


async def test_without_a_body_it_begins_where_the_run_last_was(door: Door) -> None:
    """AW-14, AW-15. Restart by command: nothing need be said."""
    run_id = await answered(door)
    await door.project(run_id, RunEntry(9, "FAILED", turn=2, current_node="decision", loop_count=2, at=at()))
    answer = await door.post(f"/v1/runs/{run_id}/fork")
    assert (answer.status, answer.body["visit"]) == (202, "decision.2")
    assert (await door.get(f"/v1/runs/{run_id}")).body["status"] == "FAILED"


async def test_the_same_key_is_the_same_fork(door: Door) -> None:
    """AW-15. 200 for the second time; 409 with another body, or where the key started a run."""
    run_id, key = await answered(door), {"Idempotency-Key": "f1"}
    first = await door.post(f"/v1/runs/{run_id}/fork", {"step": "decision.1"}, headers=key)
    again = await door.post(f"/v1/runs/{run_id}/fork", {"step": "decision.1"}, headers=key)
    assert (first.status, again.status) == (202, 200)
    assert again.body == {**first.body, "updated_at": again.body["updated_at"]}
    assert (await door.post(f"/v1/runs/{run_id}/fork", {}, headers=key)).status == 409
    assert (await door.post("/v1/runs", {"workflow": "letter", "input": GOOD}, headers=key)).status == 409


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"step": "decision.7"}, 404, "no step 'decision.7'. Did you mean 'decision."),
        ({"context": {"inptu": {}}}, 422, "Did you mean 'input'?"),
        ({"context": {"input": {"to": ""}}}, 422, "context.input.to"),
        ({"workflow_version": 4}, 422, "has no version 4"),
        ({"nonsense": 1}, 422, "nonsense"),
        ({"context": {"input": deep(65)}}, 422, "'field': 'context.input'"),
        ({"context": {"decision": deep(65)}}, 422, "'field': 'context.decision'"),
        ({"workflow_version": 0}, 422, "workflow_version"),
    ],
)
async def test_what_does_not_hold_is_told_by_its_field(
    door: Door, body: dict[str, Any], status: int, words: str
) -> None:
    """AW-15. And nothing is started."""
    run_id = await answered(door)
    answer = await door.post(f"/v1/runs/{run_id}/fork", body)
    assert (answer.status, words in str(answer.body)) == (status, True), answer.body
    assert len((await door.get("/v1/runs")).body["items"]) == 1


async def test_what_cannot_be_forked_is_a_conflict(door: Door) -> None:
    """AW-15. A run that has not begun, one whose rows lack how a visit ended, one whose workflow was deleted."""
    begun = await door.start()
    answer = await door.post(f"/v1/runs/{begun}/fork")
    assert (answer.status, "has not begun" in answer.body["detail"]) == (409, True)
    await door.project(begun, RunEntry(2, "RUNNING", turn=0, current_node=None, loop_count=0, at=at()))
    answer = await door.post(f"/v1/runs/{begun}/fork")
    assert (answer.status, "is RUNNING and has no visit on record" in answer.body["detail"]) == (409, True)
    lacking = await answered(door)
    await door.project(lacking, EventEntry("decision.3", "agent.node_started", at()))
    answer = await door.post(f"/v1/runs/{lacking}/fork")
    assert (answer.status, "how decision.2 ended is not recorded" in answer.body["detail"]) == (409, True)
    async with door.db.transaction() as conn:
        await workflows.remove(conn, TENANT, "letter", "olga")
    answer = await door.post(f"/v1/runs/{lacking}/fork", {"step": "decision.1"})
    assert (answer.status, "was deleted" in answer.body["detail"]) == (409, True)


async def test_a_free_tree_has_no_graph_to_begin_in(door: Door) -> None:
    """AW-15. It says so."""
    bundle = {"tree": {"name": "talk", "version": 1, "maxEvents": 1000}, "agents": {}, "providers": {}}
    async with door.db.transaction() as conn:
        await workflows.publish(conn, TENANT, "talk", bundle, "h1")
    answer = await door.post("/v1/runs", {"workflow": "talk", "input": {}})
    run_id = answer.body["run_id"]
    answer = await door.post(f"/v1/runs/{run_id}/fork")
    assert (answer.status, "free tree 'talk'" in answer.body["detail"]) == (409, True)


async def test_a_fork_can_have_another_version(door: Door) -> None:
    """AW-15. The node must be there, and the input must be one that this version takes."""
    run_id = await answered(door)
    spec: dict[str, Any] = LETTER["spec"]  # type: ignore[assignment]  # a manifest as plain data
    needs_more = {**LETTER, "spec": {**spec, "input": {"type": "object", "required": ["date"]}}}
    second = await publish(door.db, needs_more)
    body: dict[str, Any] = {"step": "decision.2", "workflow_version": second}
    answer = await door.post(f"/v1/runs/{run_id}/fork", body)
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, "context.input.date")
    answer = await door.post(f"/v1/runs/{run_id}/fork", {**body, "context": {"input": {"date": "today"}}})
    assert (answer.status, answer.body["workflow_version"], answer.body["input"]) == (202, second, {"date": "today"})
    renamed = {**spec, "initialNode": "other", "nodes": [{**spec["nodes"][0], "id": "other"}], "edges": [
        {**edge, "from": "other", "to": "end"} for edge in spec["edges"]
    ]}  # fmt: skip
    third = await publish(door.db, {**LETTER, "spec": renamed})
    answer = await door.post(f"/v1/runs/{run_id}/fork", {**body, "workflow_version": third})
    assert (answer.status, "has no node 'decision'" in str(answer.body)) == (422, True)


async def test_only_operators_fork_and_only_in_their_tenant(door: Door) -> None:
    """AW-15. As with starting a run."""
    run_id = await answered(door)
    assert (await door.post(f"/v1/runs/{run_id}/fork", role="reviewer")).status == 403
    assert (await door.post(f"/v1/runs/{run_id}/fork", tenant="other")).status == 404
    assert (await door.post(f"/v1/runs/{uuid4()}/fork")).status == 404


async def test_a_run_that_is_deleted_meanwhile_is_not_there(door: Door) -> None:
    """AW-15. The fork has seen the row and waits for its lock, while retention deletes the run: 404, and no fork."""
    run_id = await answered(door)
    await door.project(run_id, RunEntry(9, "CANCELLED", turn=2, current_node="decision", loop_count=2, at=at()))
    async with door.admin.transaction() as conn:
        await conn.execute("delete from agent_ops.agent_runs where run_id = %s", (run_id,))
        asked_for = asyncio.create_task(door.post(f"/v1/runs/{run_id}/fork", {"step": "decision.1"}))
        await eventually(lambda: _waited_for(conn), "the fork waits for the row")
    answer = await asked_for
    assert (answer.status, f"There is no run {run_id}" in answer.body["detail"]) == (404, True)
    assert (await door.get("/v1/runs")).body["items"] == []


async def _waited_for(conn: Connection) -> bool | None:
    """Whether somebody waits for a lock that this connection has."""
    query = "select true from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
    return await (await conn.execute(query)).fetchone() is not None or None


async def test_a_fork_stays_when_its_origin_is_deleted(door: Door) -> None:
    """AW-15. Where it came from stays told."""
    run_id = await answered(door)
    made = (await door.post(f"/v1/runs/{run_id}/fork", {"step": "decision.1"})).body
    await door.project(run_id, RunEntry(9, "CANCELLED", turn=2, current_node="decision", loop_count=2, at=at()))
    async with door.admin.transaction() as conn:
        await conn.execute("delete from agent_ops.agent_runs where run_id = %s", (run_id,))
    found = (await door.get(f"/v1/runs/{made['run_id']}")).body
    assert found["forked_from"] == {"run_id": str(run_id), "path": "decision.1"}
    async with door.db.transaction() as conn:
        await projection.add_event(conn, TENANT, UUID(made["run_id"]), "", "still_there", {})
