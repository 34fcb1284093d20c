"""A signal on its way from a person or machine to a run that waits for it, or will."""

from __future__ import annotations

import difflib
from uuid import UUID, uuid4

from casework.api import detail, submission
from casework.api.access import Caller
from casework.api.requests import SendSignal
from casework.api.services import Services
from casework.durable.contracts import Signal
from casework.errors import FieldsError, NotFoundError, StateError, UnserialisableError
from casework.store import workflows
from casework.store.rows import RunRow
from casework.trees.bundle import PinnedTree, pinned_from_plain
from casework.values import bounded

PAYLOAD_BYTES = 64 * 1024
"""Longest payload, as JSON: it goes through the run's history."""
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


async def send(services: Services, caller: Caller, run_id: UUID, name: str, given: SendSignal) -> Signal:
    """Send a signal to its run.

    Raises:
        NotFoundError: there is no such run, or no node of its workflow waits for that name.
        StateError: the run has ended.
        FieldsError: the payload is too long.
    """
    async with services.db.transaction() as conn:
        row = await detail.found(conn, caller.tenant, run_id)
        bundle = await workflows.get(conn, row.tenant, row.workflow_name, row.workflow_version)
    if row.status in ENDED:
        raise StateError(f"Run {run_id} is {row.status} and takes no signal.", details={"run_status": row.status})
    _check_name(row, name, bundle)
    try:
        payload = bounded(given.payload, "the payload of a signal", PAYLOAD_BYTES)
    except UnserialisableError as error:
        raise FieldsError(str(error), [{"field": "payload", "message": str(error)}]) from None
    if row.status == "PENDING":  # a message needs a Temporal workflow to go to
        await submission.start_or_close(services, row)
    signal = Signal(name, given.signal_id or str(uuid4()), caller.name, payload)
    await services.runs.signal(str(run_id), signal)
    return signal


def _check_name(row: RunRow, name: str, bundle: object) -> None:
    pinned = pinned_from_plain(bundle) if isinstance(bundle, dict) else None
    vertices = () if pinned is None or isinstance(pinned, PinnedTree) else pinned.workflow.spec.vertices
    known = sorted({each.signal for each in vertices if each.signal is not None})
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" It waits for {', '.join(known) or 'none'}."
    raise NotFoundError(f"Workflow {row.workflow_name!r} of run {row.run_id} waits for no signal {name!r:.100}.{hint}")
