"""Manifests applied through the API: versions, what refers to what, roles, sessions, deletion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
from temporalio.client import Client

from casework.api import create_app
from casework.app import App
from casework.durable.publish import displaced
from casework.durable.publish import publish as publish_app
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider
from casework.store import resources, runs, workflows
from tests.integration.api.conformance import published
from tests.integration.api.conftest import GOOD, LETTER, Door, publish

HEAD = {"apiVersion": "casework.dev/v1alpha1"}


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec}


PROVIDER = resource("LlmProvider", "main", type="openai", baseUrl="http://localhost:1/v1", defaultModel="small")
AGENT = resource("AiAgent", "writer", provider="main", systemPrompt="Write.")
WRITING = resource(
    "AiWorkflow",
    "writing",
    initialNode="write",
    nodes=[{"id": "write", "type": "AGENT", "agentRef": "writer", "outputKey": "text"}],
)
SESSION = resource("WorkflowSession", "first", workflowRef="letter", input=GOOD)


async def apply(door: Door, *manifests: dict[str, Any], **options: Any) -> Any:
    answer = await door.post("/v1/resources", {"manifests": list(manifests)}, **options)
    assert answer.status == 200, answer.body
    return answer.body


async def latest(door: Door, name: str) -> Any:
    async with door.db.transaction() as conn:
        return await workflows.latest(conn, "default", name)


async def test_what_is_applied_becomes_a_version_that_runs_start_of(door: Door) -> None:
    """AW-2. Applied together, admitted together; the same again changes nothing."""
    made = await apply(door, WRITING, AGENT, PROVIDER)
    assert [(one["kind"], one["generation"], one["outcome"]) for one in made["items"]] == [
        ("AiWorkflow", 1, "created"), ("AiAgent", 1, "created"), ("LlmProvider", 1, "created")]  # fmt: skip
    assert made["published"] == [{"name": "writing", "version": 1}]
    again = await apply(door, WRITING, AGENT, PROVIDER)
    assert {one["outcome"] for one in again["items"]} == {"unchanged"}
    assert again["published"] == []
    assert (await door.get("/v1/workflows/writing")).body["version"] == 1
    assert (await door.get("/v1/workflows/writing/manifest")).body["manifest"]["spec"]["initialNode"] == "write"


async def test_a_changed_agent_gives_its_workflows_a_version(door: Door) -> None:
    """AW-2. A version is the whole bundle: what the workflow refers to is part of it. A run keeps its own."""
    await apply(door, WRITING, AGENT, PROVIDER)
    changed = {**AGENT, "spec": {**AGENT["spec"], "systemPrompt": "Write well."}}
    made = await apply(door, changed)
    assert made["published"] == [{"name": "writing", "version": 2}]
    version, bundle = await latest(door, "writing")
    assert (version, bundle["agents"]["writer"]["spec"]["systemPrompt"]) == (2, "Write well.")
    shown = (await door.get("/v1/resources/AiAgent/writer")).body
    assert [one["generation"] for one in shown["generations"]] == [2, 1]


async def test_a_dry_run_writes_nothing(door: Door) -> None:
    """AW-2."""
    body = {"manifests": [WRITING, AGENT, PROVIDER], "dry_run": True}
    answer = await door.post("/v1/resources", body)
    assert (answer.status, answer.body["published"]) == (200, [{"name": "writing", "version": 1}])
    assert (await door.get("/v1/resources")).body["items"] == []
    assert await latest(door, "writing") is None


async def test_all_or_nothing(door: Door) -> None:
    """AW-2. AW-5. One manifest that does not hold keeps the others out, and is named."""
    broken = {**WRITING, "spec": {**WRITING["spec"], "initialNode": "writ"}}
    answer = await door.post("/v1/resources", {"manifests": [PROVIDER, AGENT, broken]})
    assert answer.status == 422
    assert "Did you mean 'write'?" in answer.body["detail"]
    assert "manifests[2].spec.initialNode: AiWorkflow 'writing'" in answer.body["detail"]
    assert (await door.get("/v1/resources")).body["items"] == []


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({**AGENT, "kind": "AiAgnt"}, "manifests[0].kind"),
        ({"kind": "AiAgent", "metadata": {"name": "a"}, "spec": {"provider": "p"}}, "manifests[0].apiVersion"),
        (resource("AiAgent", "a", provder="p"), "manifests[0].spec.provder"),
        (resource("AiAgent", "Not a name", provider="p"), "manifests[0].metadata.name"),
        (resource("LlmProvider", "p", type="openai", keyRef={"env": "HOME"}), "manifests[0].spec.keyRef"),
        (resource("LlmProvider", "p", type="openai", keyRef={"file": "/etc/passwd"}), "manifests[0].spec.keyRef"),
        (resource("McpServer", "m", type="stdio", command="x", env={"A": {"env": "HOME"}}), "manifests[0].spec.env.A"),
        ({}, "manifests[0].kind"),
    ],
)
async def test_every_fault_is_named_by_its_field(door: Door, manifest: dict[str, Any], field: str) -> None:
    """AW-2. Among them keys of the worker's environment that an applied manifest may not name."""
    answer = await door.post("/v1/resources", {"manifests": [manifest]})
    assert answer.status == 422
    assert field in [error["field"] for error in answer.body["errors"]]


async def test_a_text_that_could_not_be_kept_is_refused(door: Door) -> None:
    """AW-2. A NUL would be another character in the row, so it is refused here as it is in a file."""
    body = json.dumps({"manifests": [resource("AiAgent", "a", provider="p", systemPrompt="a\0b")]})
    answer = await door.post("/v1/resources", content=body.encode())
    assert answer.status == 422
    assert answer.body["errors"] == [{"field": "manifests[0].spec.systemPrompt", "message": "holds a NUL character"}]


async def test_a_manifest_twice_is_refused(door: Door) -> None:
    answer = await door.post("/v1/resources", {"manifests": [PROVIDER, PROVIDER]})
    assert answer.status == 422
    assert "twice" in answer.body["errors"][0]["message"]


async def test_definitions_need_an_admin_and_sessions_an_operator(door: Door) -> None:
    """AW-2. DA-31. Deny by default: a viewer and a reviewer apply nothing, an operator only sessions."""
    for role, wanted in (("viewer", 403), ("reviewer", 403), ("operator", 403), ("metrics", 403), ("admin", 200)):
        answer = await door.post("/v1/resources", {"manifests": [PROVIDER]}, role=role)
        assert answer.status == wanted, role
    for role, wanted in (("viewer", 403), ("operator", 200)):
        assert (await door.post("/v1/resources", {"manifests": [SESSION]}, role=role)).status == wanted
    for role, wanted in (("viewer", 403), ("operator", 403), ("admin", 200)):
        assert (await door.ask("DELETE", "/v1/resources/LlmProvider/main", role=role)).status == wanted
    assert (await door.get("/v1/resources", role="metrics")).status == 403


async def test_other_tenants_see_nothing(door: Door) -> None:
    await apply(door, PROVIDER)
    assert (await door.get("/v1/resources", tenant="other")).body["items"] == []
    assert (await door.get("/v1/resources/LlmProvider/main", tenant="other")).status == 404


async def test_the_list_has_pages_and_kinds(door: Door) -> None:
    await apply(door, WRITING, AGENT, PROVIDER)
    first = (await door.get("/v1/resources", limit=2)).body
    assert [one["name"] for one in first["items"]] == ["writer", "writing"]
    second = (await door.get("/v1/resources", limit=2, cursor=first["next_cursor"])).body
    assert ([one["name"] for one in second["items"]], second["next_cursor"]) == (["main"], None)
    assert [one["name"] for one in (await door.get("/v1/resources", kind="AiAgent")).body["items"]] == ["writer"]
    assert (await door.get("/v1/resources", kind="AiAgnt")).status == 422
    assert (await door.get("/v1/resources", cursor="nonsense")).status == 422


async def test_status_shows_conditions_and_the_observed_generation(door: Door) -> None:
    """AW-2. AW-16. Worked out at the moment: what the agent comes to, and whether it holds."""
    await apply(door, WRITING, AGENT, PROVIDER)
    agent = (await door.get("/v1/resources/AiAgent/writer")).body["status"]
    assert agent["observedGeneration"] == 1
    assert {one["type"]: one["status"] for one in agent["conditions"]} == {"Accepted": "True", "Ready": "True"}
    assert agent["effectiveModel"] == "small"
    workflow = (await door.get("/v1/resources/AiWorkflow/writing")).body["status"]
    assert {one["type"]: one["status"] for one in workflow["conditions"]} == {
        "Accepted": "True", "Ready": "True", "InForce": "True"}  # fmt: skip
    assert workflow["publishedVersion"] == 1
    other = {**WRITING, "spec": {**WRITING["spec"], "maxLoops": 7}}
    agents = (AiAgent.model_validate(AGENT),)
    await publish(door.db, other, agents, (LlmProvider.model_validate(PROVIDER),))
    workflow = (await door.get("/v1/resources/AiWorkflow/writing")).body["status"]
    assert {one["type"]: one["reason"] for one in workflow["conditions"]}["InForce"] == "OtherContent"


async def test_a_deleted_workflow_starts_no_run_and_keeps_those_it_has(door: Door) -> None:
    """AW-2. Its versions stay for the runs that are pinned to them; applied again it is there again."""
    run_id = await door.start()
    answer = await door.ask("DELETE", "/v1/resources/AiWorkflow/letter")
    assert (answer.status, answer.body["hidden_version"]) == (200, 1)
    assert (await door.post("/v1/runs", {"workflow": "letter", "input": GOOD})).status == 422
    assert (await door.get("/v1/workflows/letter")).status == 404
    assert (await door.get(f"/v1/runs/{run_id}")).body["workflow_version"] == 1
    async with door.db.transaction() as conn:
        assert await workflows.get(conn, "default", "letter", 1) is not None
    assert (await door.ask("DELETE", "/v1/resources/AiWorkflow/letter")).status == 404
    assert (await apply(door, LETTER))["published"] == [{"name": "letter", "version": 2}]
    await door.start()


async def test_what_is_used_is_not_deleted(door: Door) -> None:
    """AW-2. The refusal names who uses it."""
    await apply(door, WRITING, AGENT, PROVIDER)
    answer = await door.ask("DELETE", "/v1/resources/LlmProvider/main")
    assert answer.status == 409
    assert "used by workflow 'writing'" in answer.body["detail"]
    assert (await door.ask("DELETE", "/v1/resources/AiWorkflow/writing")).status == 200
    assert (await door.ask("DELETE", "/v1/resources/AiAgent/writer")).status == 200
    assert (await door.ask("DELETE", "/v1/resources/LlmProvider/main")).status == 200
    assert (await door.get("/v1/resources/LlmProvider/main")).status == 404


async def test_a_session_starts_one_run(door: Door) -> None:
    """AW-2. Applied again it is the same run; its status is that of the run."""
    first = await apply(door, SESSION)
    again = await apply(door, SESSION)
    assert [one["outcome"] for one in (first["items"][0], again["items"][0])] == ["created", "unchanged"]
    assert first["items"][0]["run_id"] == again["items"][0]["run_id"]
    shown = (await door.get("/v1/resources/WorkflowSession/first")).body
    assert shown["status"]["sessionId"] == first["items"][0]["run_id"]
    assert shown["status"]["phase"] == "PENDING"
    assert {"loopCount", "tokens", "cost", "startTime", "nodeExecutions", "output"} <= shown["status"].keys()
    assert len((await door.get("/v1/runs")).body["items"]) == 1


async def test_a_session_does_not_change(door: Door) -> None:
    """AW-2."""
    await apply(door, SESSION)
    other = {**SESSION, "spec": {**SESSION["spec"], "input": {**GOOD, "amount": 13}}}
    answer = await door.post("/v1/resources", {"manifests": [other]})
    assert answer.status == 409
    assert "another spec" in answer.body["detail"]


async def test_a_sessions_own_limit_is_its_own(door: Door) -> None:
    """AW-2. `maxLoops` of a session is pinned by its run and changes nobody else's."""
    limited = {**SESSION, "spec": {**SESSION["spec"], "maxLoops": 3}}
    made = await apply(door, limited)
    run = (await door.get(f"/v1/runs/{made['items'][0]['run_id']}")).body
    async with door.db.transaction() as conn:
        bundle: Any = await workflows.get(conn, "default", "letter", run["workflow_version"])
    assert bundle["workflow"]["spec"]["maxLoops"] == 3
    version, newest = await latest(door, "letter")
    assert (version, newest["workflow"]["spec"]["maxLoops"]) == (1, 50)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"workflowRef": "leter", "input": GOOD}, "Did you mean 'letter'?"),
        ({"workflowRef": "leter", "input": GOOD}, "manifests[1].spec.workflowRef: WorkflowSession 'bad'"),
        ({"workflowRef": "letter", "input": {"to": "Ada"}}, "manifests[1].spec.input.amount"),
        ({"workflowRef": "letter", "input": {**GOOD, "amount": "much"}}, "manifests[1].spec.input.amount"),
    ],
)
async def test_a_session_that_does_not_fit_starts_nothing(door: Door, spec: dict[str, Any], told: str) -> None:
    """AW-2."""
    answer = await door.post("/v1/resources", {"manifests": [PROVIDER, resource("WorkflowSession", "bad", **spec)]})
    assert answer.status == 422
    assert told in str(answer.body)
    assert (await door.get("/v1/resources")).body["items"] == []
    assert (await door.get("/v1/runs")).body["items"] == []


async def test_a_session_is_deleted_when_its_run_has_ended(door: Door) -> None:
    """AW-2. The name can be used again, for another run."""
    first = await apply(door, SESSION)
    answer = await door.ask("DELETE", "/v1/resources/WorkflowSession/first", role="operator")
    assert answer.status == 409
    assert "casework runs cancel" in answer.body["detail"]
    async with door.db.transaction() as conn:
        await runs.close_from_outside(conn, "default", UUID(first["items"][0]["run_id"]), "test")
    assert (await door.ask("DELETE", "/v1/resources/WorkflowSession/first", role="operator")).status == 200
    second = await apply(door, SESSION)
    assert second["items"][0]["run_id"] != first["items"][0]["run_id"]


async def test_a_session_may_come_with_its_workflow(door: Door) -> None:
    """AW-2. Applied in one request, in any order."""
    note = {**LETTER, "metadata": {"name": "note"}}
    session = resource("WorkflowSession", "s", workflowRef="note", input=GOOD)
    made = await apply(door, session, note)
    assert {one["kind"]: one["outcome"] for one in made["items"]} == {
        "AiWorkflow": "created", "WorkflowSession": "created"}  # fmt: skip


async def test_mcp_servers_are_kept_and_say_that_nobody_uses_them(door: Door) -> None:
    """AW-2."""
    await apply(door, resource("McpServer", "files", type="http", url="http://localhost:2"))
    status = (await door.get("/v1/resources/McpServer/files")).body["status"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == {"Accepted": "True", "Ready": "Unknown"}


@pytest.fixture
async def loan_door(door: Door, temporal_client: Client) -> AsyncIterator[Door]:
    """The API of the loan example's application."""
    from casework.examples.loan_underwriting.application import app

    made = create_app(door.settings, app, door.db, door.run_client)
    transport = httpx2.ASGITransport(made, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test") as client:
        yield Door(door.db, made, client, door.admin, door.settings, door.run_client, published())


async def test_an_applied_agent_stands_before_the_applications_own(loan_door: Door) -> None:
    """AW-2. Deleted, the application's own counts again, in a version of its own."""
    own: Any = loan_door.app.state.services.app.workflow("loan-underwriting").agents["underwriter"]
    manifest = own.model_dump(by_alias=True)
    manifest["spec"]["systemPrompt"] = "Be strict."
    made = await apply(loan_door, manifest)
    assert [one["name"] for one in made["published"]] == ["loan-underwriting"]
    _, bundle = await latest(loan_door, "loan-underwriting")
    assert bundle["agents"]["underwriter"]["spec"]["systemPrompt"] == "Be strict."
    assert (await loan_door.ask("DELETE", "/v1/resources/AiAgent/underwriter")).status == 200
    _, bundle = await latest(loan_door, "loan-underwriting")
    assert bundle["agents"]["underwriter"]["spec"]["systemPrompt"] == own.spec.system_prompt


async def test_a_tool_of_the_application_may_be_named_and_no_other(loan_door: Door) -> None:
    """AW-5. The near name is told."""
    answer = await loan_door.post(
        "/v1/resources", {"manifests": [resource("AiAgent", "x", provider="underwriting-model", tools=["credit_chek"])]}
    )
    assert answer.status == 422
    assert "Did you mean 'credit_check'?" in answer.body["detail"]


async def test_a_session_applied_by_many_at_once_is_one_run(door: Door) -> None:
    """AW-2. One is created, the others find it."""
    answers = await asyncio.gather(*(door.post("/v1/resources", {"manifests": [SESSION]}) for _ in range(6)))
    assert {answer.status for answer in answers} == {200}
    found = [answer.body["items"][0] for answer in answers]
    assert sorted(one["outcome"] for one in found) == ["created", *["unchanged"] * 5]
    assert len({one["run_id"] for one in found}) == 1


async def test_a_row_of_another_release_keeps_nobody_from_applying(door: Door) -> None:
    """AW-2. What this release cannot read is told in its status, and stands in nobody's way."""
    strange = {**AGENT, "spec": {"provider": "main", "mood": "good"}}
    async with door.db.transaction() as conn:
        await resources.add(conn, resources.NewResource("default", "AiAgent", "writer", "h", strange, "ada"))
    status = (await door.get("/v1/resources/AiAgent/writer")).body["status"]
    assert status["conditions"][-1]["reason"] == "NotReadable"
    await apply(door, PROVIDER)
    assert (await apply(door, AGENT))["items"][0]["generation"] == 2


async def test_a_workflow_that_came_to_harm_keeps_nobody_from_applying(door: Door) -> None:
    """AW-2. An application that lost a tool: the workflow says so, and something else can be applied."""
    lost = {**AGENT, "metadata": {"name": "lost"}, "spec": {"provider": "main", "tools": ["gone"]}}
    broken: dict[str, Any] = resource(
        "AiWorkflow",
        "broken",
        initialNode="a",
        nodes=[{"id": "a", "type": "AGENT", "agentRef": "lost", "outputKey": "x"}],
    )
    async with door.db.transaction() as conn:
        for one in (lost, broken):
            name = one["metadata"]["name"]
            await resources.add(conn, resources.NewResource("default", one["kind"], name, "h", one, "ada"))
    await apply(door, WRITING, AGENT, PROVIDER)
    conditions = (await door.get("/v1/resources/AiWorkflow/broken")).body["status"]["conditions"]
    ready = next(one for one in conditions if one["type"] == "Ready")
    assert ready["status"] == "False"
    assert "gone" in ready["message"]


async def test_what_breaks_a_workflow_that_holds_is_refused(door: Door) -> None:
    """AW-2. AW-5. A provider without the model that an agent of a workflow counts on."""
    await apply(door, WRITING, AGENT, PROVIDER)
    less = resource("LlmProvider", "main", type="openai")
    answer = await door.post("/v1/resources", {"manifests": [less]})
    assert answer.status == 422
    assert "defaultModel" in answer.body["detail"]


async def test_what_an_application_puts_out_of_force_is_named_once(door: Door) -> None:
    """AW-2. Its own workflows become the newest versions; applied again, those that were applied are."""
    spec: Any = LETTER["spec"]
    changed = {**LETTER, "spec": {**spec, "maxLoops": 7}}
    app = App(manifests=[AiWorkflow.model_validate(LETTER)])
    await apply(door, changed, WRITING, AGENT, PROVIDER)
    assert await displaced(app, door.db) == ["AiWorkflow/letter"]
    await publish_app(app, door.db)
    assert await displaced(app, door.db) == []
    assert (await apply(door, changed))["published"] == [{"name": "letter", "version": 4}]
    assert await displaced(app, door.db) == ["AiWorkflow/letter"]
    await apply(door, LETTER)
    assert await displaced(app, door.db) == [], "the application has the same"
