"""Free trees behind the same door as workflows."""

from __future__ import annotations

from uuid import UUID

from casework.app import App
from casework.durable.publish import publish
from casework.store import runs
from casework.trees import TreeContext, free_tree
from tests.integration.api.conftest import TENANT, Door

SCHEMA = {"type": "object", "required": ["topic"], "properties": {"topic": {"type": "string"}}}


@free_tree("panel", version=3, input=SCHEMA)
async def panel(_: TreeContext) -> None:
    """Nothing; no worker is there to run it."""


async def test_a_tree_is_listed_and_shown_as_a_workflow(door: Door) -> None:
    """DA-31. With the schema of its input; it has no nodes that could be known before it runs."""
    await publish(App(trees=[panel]), door.db)
    listed = (await door.get("/v1/workflows")).body["items"]
    assert {"name": "panel", "version": 1} in listed
    shown = (await door.get("/v1/workflows/panel")).body
    assert (shown["input_schema"], shown["nodes"]) == (SCHEMA, [])


async def test_a_run_of_a_tree_is_started_by_its_name(door: Door) -> None:
    """DA-7, DA-8. The input is checked, the row is the promise; the Temporal workflow follows from the bundle."""
    await publish(App(trees=[panel]), door.db)
    refused = await door.post("/v1/runs", {"workflow": "panel", "input": {"topic": 5}})
    assert (refused.status, refused.body["errors"][0]["field"]) == (422, "input.topic")
    answer = await door.post("/v1/runs", {"workflow": "panel", "input": {"topic": "salt"}})
    assert answer.status == 202
    run_id = UUID(answer.body["run_id"])
    handle = door.run_client._client.get_workflow_handle(str(run_id))
    assert (await handle.describe()).workflow_type == "casework.tree"
    async with door.db.transaction() as conn:
        row = await runs.get(conn, TENANT, run_id)
    assert row is not None
    assert (row.workflow_name, row.workflow_version, row.status) == ("panel", 1, "PENDING")
    await handle.terminate("the test is over")


async def test_a_name_that_is_nearly_a_trees_is_suggested(door: Door) -> None:
    """DA-7. Workflows and trees have one space of names."""
    await publish(App(trees=[panel]), door.db)
    answer = await door.post("/v1/runs", {"workflow": "panle", "input": {"topic": "salt"}})
    assert answer.status == 422
    assert "did you mean 'panel'" in str(answer.body)
