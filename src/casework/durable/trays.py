"""Starting a tray: what a claim has stamped becomes the input of a Temporal workflow of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from uuid import UUID

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from casework.durable.client import CALL_TIMEOUT
from casework.durable.process_contracts import TRAY_WORKFLOW, TrayStart, apart_ms, standing
from casework.errors import ExpressionError, InputError, ProcessDeclarationError
from casework.process.lines import FINALIZER, MONITOR, Line, record_of
from casework.process.tasks import Kind
from casework.process.transactions import Transaction
from casework.process.walk import Entry
from casework.settings import HistorySettings


def tray_id(claim_id: UUID) -> str:
    """The id of the Temporal workflow that is the tray of a claim."""
    return f"tray-{claim_id}"


def tray_start(line: Line, claimed: Sequence[Transaction], bounds: HistorySettings | None = None) -> TrayStart:
    """The input of the tray of one claim: where the Rules behind the Monitor send each of its Transactions.

    Raises:
        InputError: there is none, or one that bears no claim or another's.
    """
    claims = {(each.tenant, each.claim_id) for each in claimed}
    tenant, claim = next(iter(claims), ("", None))
    if claim is None or len(claims) > 1:
        raise InputError(f"A tray takes the Transactions of one claim; these bear {claims!r:.200}.", field="claimed")
    bounds = bounds or HistorySettings()
    return TrayStart(
        tenant=tenant,
        process=line.process.name,
        claim_id=claim,
        shape=line.shape,
        entries=tuple(_entry(line, each) for each in claimed),
        standing=standing((each.uuid, each.status) for each in claimed),
        deadlines_ms={name: math.ceil(spec.timeout * 1000) for name, spec in line.specs.items()},
        roll_over_events=bounds.roll_over_events,
        roll_over_bytes=bounds.roll_over_bytes,
        ahead=tuple(name for name in line.stations if quick(line, name)),
        apart_ms={name: apart_ms(rate) for name, rate in line.limits.items()},
    )


def quick(line: Line, station: str) -> bool:
    """Whether its work may be done with that of the station before: it is the platform's own, or acts on rows alone.

    A task with a limit is alone.
    """
    spec = line.specs.get(station)
    if spec is None:
        return station == FINALIZER
    return spec.max_per_second is None and (spec.computes or spec.kind is Kind.TRANSACTIONAL)


async def start_tray(client: Client, start: TrayStart, task_queue: str) -> bool:
    """Start the tray; one that is there already is left as it is. False where it has ended.

    Raises:
        RPCError: the engine cannot be reached, or refuses it.
    """
    try:
        await client.start_workflow(
            TRAY_WORKFLOW,
            start,
            id=tray_id(start.claim_id),
            task_queue=task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            rpc_timeout=CALL_TIMEOUT,
            static_summary=f"{start.process}: a tray of {len(start.entries)}"[:200],
        )
    except WorkflowAlreadyStartedError:
        return False
    return True


def _entry(line: Line, transaction: Transaction) -> Entry:
    """A Rule that cannot be evaluated over it refuses it the line, and it alone."""
    try:
        to, refused = line.route(MONITOR, record_of(transaction)), None
    except (ExpressionError, ProcessDeclarationError) as error:
        to, refused = line.stations[1], str(error)
    return Entry(transaction.uuid, to, transaction.parent_uuid, transaction.skip_until, refused)
