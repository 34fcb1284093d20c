"""Starting runs: what is checked, what a repeat finds, and what holds while the engine is away."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx2
import pytest
from temporalio.client import WorkflowExecutionStatus

from casework import ids
from casework.api import create_app
from casework.app import App
from casework.durable.client import RunClient
from casework.graph.manifests import AiAgent, LlmProvider
from casework.settings import Settings, TemporalSettings
from casework.store import runs
from tests.integration.api.conftest import GOOD, LETTER, TENANT, Door, publish

API_VERSION = "casework.dev/v1alpha1"
AGENT = AiAgent.model_validate(
    {"apiVersion": API_VERSION, "kind": "AiAgent", "metadata": {"name": "clerk"}, "spec": {"provider": "scripts"}}
)
PROVIDER = LlmProvider.model_validate(
    {
        "apiVersion": API_VERSION,
        "kind": "LlmProvider",
        "metadata": {"name": "scripts"},
        "spec": {"type": "scripted", "script": "clerk"},
    }
)
ASKING = {
    "apiVersion": API_VERSION,
    "kind": "AiWorkflow",
    "metadata": {"name": "asking"},
    "spec": {
        "initialNode": "ask",
        "nodes": [{"id": "ask", "type": "AGENT", "agentRef": "clerk", "inputTemplate": "Hello", "outputKey": "said"}],
    },
}


def start(**more: Any) -> dict[str, Any]:
    return {"workflow": "letter", "input": GOOD, **more}


async def count(door: Door) -> int:
    return len((await door.get("/v1/runs")).body["items"])


async def test_a_run_is_accepted_and_its_temporal_workflow_has_its_id(door: Door) -> None:
    """DA-8, AW-14. 202 with the run, with no worker up; one id for the Temporal workflow and all rows."""
    answer = await door.post("/v1/runs", start(turn_limit=3, model="openai:small"), role="operator", name="olga")
    assert answer.status == 202
    run = answer.body
    assert answer.headers["location"] == f"/v1/runs/{run['run_id']}"
    assert (run["status"], run["user"], run["actor"], run["turn_limit"]) == ("PENDING", "olga", "olga", 3)
    assert (run["model"], run["workflow_version"], run["version"]) == ("openai:small", 1, 0)
    described = await door.run_client._client.get_workflow_handle(run["run_id"]).describe()
    assert described.status is WorkflowExecutionStatus.RUNNING


async def test_money_keeps_its_digits_through_the_door(door: Door) -> None:
    answer = await door.ask(
        "POST", "/v1/runs", content=b'{"workflow": "letter", "input": {"to": "Ada", "amount": 100000000000000000.10}}'
    )
    assert str(answer.body["input"]["amount"]) == "100000000000000000.10"
    read = await door.get(f"/v1/runs/{answer.body['run_id']}")
    assert str(read.body["input"]["amount"]) == "100000000000000000.10"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"workflow", "input"}),
        ({"workflow": "letter"}, {"input"}),
        (start(input={}), {"input.to", "input.amount"}),
        (start(input={"to": "", "amount": "5", "x": 1}), {"input.to", "input.amount", "input.x"}),
        (start(input=[1]), {"input"}),
        (start(workflow=" "), {"workflow"}),
        (start(workflow="a\x00b"), {"workflow"}),
        (start(workflow="x" * 201), {"workflow"}),
        (start(turn_limit=0), {"turn_limit"}),
        (start(turn_limit="5"), {"turn_limit"}),
        (start(turn_limit=True), {"turn_limit"}),
        (start(on_behalf_of=""), {"on_behalf_of"}),
        (start(extra=1), {"extra"}),
        (start(workflow="lettr"), {"workflow"}),
    ],
)
async def test_what_is_missing_or_invalid_is_422_with_the_field_and_nothing_is_started(
    door: Door, body: dict[str, Any], fields: set[str]
) -> None:
    """DA-7. 422 with the field, nothing started."""
    answer = await door.post("/v1/runs", body)
    assert answer.status == 422
    assert {error["field"] for error in answer.body["errors"]} == fields
    assert await count(door) == 0


async def test_an_unknown_workflow_is_told_with_the_near_name(door: Door) -> None:
    answer = await door.post("/v1/runs", start(workflow="lettr"))
    assert "did you mean 'letter'?" in answer.body["detail"]


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"", "application/json", 422),
        (b"{", "application/json", 422),
        (b"[]", "application/json", 422),
        (b'{"workflow": NaN}', "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b"\xff", "application/json", 422),
        (b"workflow=letter", "application/x-www-form-urlencoded", 415),
        (b'{"workflow": "' + b"x" * 1_100_000 + b'"}', "application/json", 413),
        (b'{"workflow": "letter", "input": {"to": "A", "amount": 1e100000}}', "application/json", 422),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(door: Door, content: bytes, media_type: str, status: int) -> None:
    answer = await door.ask("POST", "/v1/runs", content=content, headers={"Content-Type": media_type})
    assert answer.status == status
    assert await count(door) == 0


async def test_text_that_no_column_holds_is_kept_by_the_documented_rule(door: Door) -> None:
    body = b'{"workflow": "letter", "input": {"to": "A\\u0000\\ud800", "amount": 1}}'
    answer = await door.ask("POST", "/v1/runs", content=body)
    assert answer.status == 202
    assert answer.body["input"]["to"] == "A\u2400\ufffd"
    async with door.db.transaction() as conn:
        row = await runs.get(conn, TENANT, UUID(answer.body["run_id"]))
    assert row is not None
    assert row.cleaned == 2


async def test_the_same_key_and_body_is_the_same_run(door: Door) -> None:
    """DA-8. The id is uuid5 of tenant, user and key; the same again returns the same run."""
    headers = {"Idempotency-Key": "one"}
    first = await door.post("/v1/runs", start(), role="operator", name="olga", headers=headers)
    again = await door.post("/v1/runs", start(), role="operator", name="olga", headers=headers)
    assert (first.status, again.status) == (202, 200)
    assert first.body["run_id"] == again.body["run_id"] == str(ids.run_id_for_key(TENANT, "olga", "one"))
    assert await count(door) == 1


async def test_a_repeat_finds_its_run_even_when_the_workflow_has_moved_on(door: Door) -> None:
    headers = {"Idempotency-Key": "one"}
    first = await door.post("/v1/runs", start(), headers=headers)
    stricter = {**LETTER, "spec": {**LETTER["spec"], "input": {"type": "object", "required": ["other"]}}}  # type: ignore[dict-item]  # a manifest is plain data
    assert await publish(door.db, stricter) == 2
    again = await door.post("/v1/runs", start(), headers=headers)
    assert (again.status, again.body["run_id"]) == (200, first.body["run_id"])
    assert again.body["workflow_version"] == 1, "a run keeps the version it was started with"


@pytest.mark.parametrize(
    "other",
    [
        {"input": {**GOOD, "amount": 13}},
        {"turn_limit": 4},
        {"model": "openai:big"},
    ],
)
async def test_the_same_key_with_another_body_is_409(door: Door, other: dict[str, Any]) -> None:
    """DA-8. Another body under the same key: 409, nothing started."""
    headers = {"Idempotency-Key": "one"}
    first = await door.post("/v1/runs", start(), headers=headers)
    answer = await door.post("/v1/runs", start(**other), headers=headers)
    assert answer.status == 409
    assert answer.body["type"] == "urn:casework:problem:idempotency-conflict"
    assert answer.body["run_id"] == first.body["run_id"]
    assert await count(door) == 1


@pytest.mark.parametrize("key", [" ", "x" * 256])
async def test_a_key_that_is_none_is_refused(door: Door, key: str) -> None:
    answer = await door.post("/v1/runs", start(), headers={"Idempotency-Key": key})
    assert answer.status == 422
    assert answer.body["errors"][0]["field"] == "Idempotency-Key"


async def test_twenty_at_once_under_one_key_are_one_run(door: Door) -> None:
    """DA-8. A race under one key: one row, one id."""
    await door.token("operator", "olga")
    headers = {"Idempotency-Key": "race"}
    asked = [door.post("/v1/runs", start(), role="operator", name="olga", headers=headers) for _ in range(20)]
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    assert len({answer.body["run_id"] for answer in answers}) == 1


async def test_an_operator_may_act_for_another(door: Door) -> None:
    """DA-7. The user is the authenticated one; an operator may act for another."""
    answer = await door.post("/v1/runs", start(on_behalf_of="ann"), role="operator", name="olga")
    assert (answer.body["user"], answer.body["actor"]) == ("ann", "olga")
    assert [run["user"] for run in (await door.get("/v1/runs", user="ann")).body["items"]] == ["ann"]


async def test_a_model_that_means_nothing_is_422(door: Door) -> None:
    """DA-7. The model, where one is named, is checked as a reference before anything is started."""
    await publish(door.db, ASKING, (AGENT,), (PROVIDER,))
    for model, told in (("scripted:nobody", "There is no script 'nobody'"), ("gpt", "does not say whose it is")):
        answer = await door.post("/v1/runs", {"workflow": "asking", "input": {}, "model": model})
        assert answer.status == 422
        assert answer.body["errors"][0]["field"] == "model"
        assert told in answer.body["detail"]
    assert await count(door) == 0
    assert (await door.post("/v1/runs", {"workflow": "asking", "input": {}, "model": "openai:small"})).status == 202


async def test_with_the_engine_away_a_run_is_accepted_and_stays_pending(door: Door) -> None:
    """DA-8. The row is written PENDING first; Temporal down is still 202."""
    away = Settings(temporal=TemporalSettings(address="127.0.0.1:9"))
    app = create_app(away, App(), door.db, await RunClient.open(away))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://casework.test") as client:
        headers = {"Authorization": f"Bearer {await door.token('operator')}"}
        answer = await client.post("/v1/runs", json=start(), headers=headers)
        assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
        cancel = await client.post(f"/v1/runs/{answer.json()['run_id']}/cancel", headers=headers)
        assert cancel.status_code == 503
        assert int(cancel.headers["retry-after"]) > 0
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["detail"]) == (503, "Temporal does not answer.")


async def test_an_engine_that_refuses_the_start_leaves_the_run_to_the_sweep(door: Door) -> None:
    """DA-8. The row is the promise: what the engine says against the start is no error of the request."""
    address = door.settings.temporal.address
    strange = Settings(temporal=TemporalSettings(address=address, namespace="no-such-namespace"))
    app = create_app(strange, App(), door.db, await RunClient.open(strange))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://casework.test") as client:
        headers = {"Authorization": f"Bearer {await door.token('operator')}"}
        answer = await client.post("/v1/runs", json=start(), headers=headers)
    assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
