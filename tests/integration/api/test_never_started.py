"""A run that the engine will never take: the request to cancel it says so, and its row says it from then on."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.store import runs
from tests.integration.api.conftest import TENANT, Door


async def pending(door: Door, **given: Any) -> UUID:
    """A row that was left PENDING."""
    async with door.db.transaction() as conn:
        row, _ = await runs.create_pending(
            conn,
            runs.NewRun(
                **{
                    "tenant": TENANT,
                    "run_id": uuid4(),
                    "workflow_name": "letter",
                    "workflow_version": 1,
                    "user": "ann",
                    "request": {"to": "Ada", "amount": 1},
                    "request_hash": "h",
                    **given,
                }
            ),
        )
    return row.run_id


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"request": {"note": "x" * 3_000_000}}, "Temporal refuses the request for good"),
        ({"request": {"note": "x" * 6_000_000}}, "Temporal refuses the request for good"),
        ({"workflow_version": 9}, "has no version 9"),
    ],
    ids=["over the engine's limit", "over the wire's limit", "version gone"],
)
async def test_cancelling_what_can_never_start_closes_it(door: Door, given: dict[str, Any], told: str) -> None:
    """DA-8. DA-31. The engine refuses the start for good: 409 with the reason, and the row is FAILED at once."""
    run_id = await pending(door, **given)
    answer = await door.post(f"/v1/runs/{run_id}/cancel", role="operator")
    assert (answer.status, answer.body["run_status"]) == (409, "FAILED")
    assert told in answer.body["detail"]
    run = (await door.get(f"/v1/runs/{run_id}")).body
    assert run["status"] == "FAILED"
    assert told in run["failure"]
    assert (await door.post(f"/v1/runs/{run_id}/cancel", role="operator")).status == 409


async def test_cancelling_a_pending_run_starts_it_to_be_cancelled(door: Door) -> None:
    """DA-8. A PENDING run that can start is received as ever: 202."""
    run_id = await pending(door)
    assert (await door.post(f"/v1/runs/{run_id}/cancel", role="operator")).status == 202
