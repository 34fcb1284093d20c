"""From a run's row to the input of its Temporal workflow: made by the API at once, by the sweep later, the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.durable.contracts import RunStart
from casework.store.rows import RunRow


def start_of(row: RunRow, bundle: Mapping[str, Any]) -> RunStart:
    """The workflow input for `row`, pinned to `bundle`."""
    return RunStart(
        run_id=str(row.run_id),
        tenant=row.tenant,
        user=row.user_id,
        input=row.request,
        bundle=bundle,
        workflow_version=row.workflow_version,
        turn_limit=row.turn_limit,
        model=row.model,
        actor=row.actor,
        request_hash=row.request_hash,
    )
