"""Signals over HTTP: received and taken, refused by name, size, role and state; the wait is told as intended."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from temporalio.client import Client

from casework.app import App
from casework.durable.activities.services import Services
from casework.durable.worker import make_worker
from casework.models.catalogue import Models
from tests.integration.api.conftest import Door, publish
from tests.integration.durable.conftest import eventually

PAUSE = {
    "apiVersion": "casework.dev/v1alpha1",
    "kind": "AiWorkflow",
    "metadata": {"name": "pause"},
    "spec": {
        "initialNode": "pay",
        "nodes": [{"id": "pay", "type": "WAIT", "signal": "paid", "duration": "PT48H", "outputKey": "payment"}],
    },
}


async def paused(door: Door) -> UUID:
    """A run that waits for its payment."""
    await publish(door.db, PAUSE)
    started = await door.post("/v1/runs", {"workflow": "pause", "input": {}})
    assert started.status == 202
    return UUID(started.body["run_id"])


async def test_a_signal_is_received_and_taken(door: Door, temporal_client: Client) -> None:
    """AW-4, DA-32. The run is seen to wait as intended; the signal ends it, and its payload is the node's value."""
    run_id = await paused(door)
    services = Services(door.db, App(), Models({}), door.settings)
    async with make_worker(temporal_client, services, door.settings):

        async def waits() -> Any:
            doing = (await door.get(f"/v1/runs/{run_id}")).body["doing"]
            return doing if doing["kind"] == "waiting" else None

        doing = await eventually(waits, "it waits")
        assert doing["steps"] == ["pay.1"]
        assert doing["text"].startswith("it waits, as intended: pay.1 for the signal paid or until ")
        sent = await door.post(f"/v1/runs/{run_id}/signals/paid", {"payload": {"sum": 5}, "signal_id": "p1"})
        assert (sent.status, sent.body["state"], sent.body["signal_id"]) == (202, "received", "p1")

        async def ended() -> Any:
            run = (await door.get(f"/v1/runs/{run_id}")).body
            return run if run["ended_at"] else None

        run = await eventually(ended, "it has ended")
        assert run["context"]["payment"] == {"timedOut": False, "payload": {"sum": 5}}
    late = await door.post(f"/v1/runs/{run_id}/signals/paid")
    assert (late.status, late.body["run_status"]) == (409, "COMPLETED")


async def test_what_is_no_signal_of_the_run_is_refused(door: Door) -> None:
    """AW-4. An unknown run, a name that nothing waits for, a payload that is too long, a member that is not known."""
    run_id = await paused(door)
    assert (await door.post(f"/v1/runs/{uuid4()}/signals/paid")).status == 404
    wrong = await door.post(f"/v1/runs/{run_id}/signals/payed")
    assert wrong.status == 404
    assert "Did you mean 'paid'?" in wrong.body["detail"]
    assert (await door.post(f"/v1/runs/{run_id}/signals/paid", {"payload": "x" * 70_000})).status == 422
    assert (await door.post(f"/v1/runs/{run_id}/signals/paid", {"pay": 1})).status == 422
    assert (await door.post(f"/v1/runs/{run_id}/signals/paid", role="viewer")).status == 403
    assert (await door.post(f"/v1/runs/{run_id}/signals/paid", tenant="other")).status == 404
