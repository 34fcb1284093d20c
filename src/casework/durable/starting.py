"""From a run's row to the input of its Temporal workflow: made by the API at once, by the sweep later, the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from casework.durable.contracts import Carried, Fork, RunStart
from casework.errors import FatalError
from casework.store import forks
from casework.store.database import Connection
from casework.store.rows import RunRow
from casework.values import Plain, plain


async def start_with_seed(conn: Connection, row: RunRow, bundle: Mapping[str, Any]) -> RunStart:
    """The workflow input for `row`, pinned to `bundle`; a fork begins with its seed.

    Raises:
        FatalError: it is a fork and has no seed.
    """
    start = start_of(row, bundle)
    if row.forked_from_run_id is None:
        return start
    seed = await forks.seed_of(conn, row.tenant, row.run_id)
    if seed is None:
        raise FatalError(
            f"what run {row.run_id} begins with as a fork of {row.forked_from_run_id} is gone. Fork again."
        )
    return replace(start, **_unpacked(seed))


def start_of(row: RunRow, bundle: Mapping[str, Any]) -> RunStart:
    """The workflow input for the row of a run that begins at its first node."""
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


def packed(carried: Carried, fork: Fork) -> dict[str, Plain]:
    """The seed of a fork, as it is stored."""
    return {"carried": plain(carried), "fork": plain(fork)}


def fork_of(seed: Mapping[str, Any]) -> Fork:
    """What a stored seed says of the fork."""
    made = seed["fork"]
    return Fork(**{**made, "edits": tuple(made["edits"])})


def _unpacked(seed: Mapping[str, Any]) -> dict[str, Any]:
    carried = seed["carried"]
    return {"carried": Carried(**{**carried, "outbox": tuple(carried["outbox"])}), "fork": fork_of(seed)}
