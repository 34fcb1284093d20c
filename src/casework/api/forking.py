"""Forking a run: everything is decided and written at the door, in one transaction, then the engine is told.

The row, what the fork begins with, and the rows that it takes over are there together or not at all. From then on it is
a run as any other: the sweep starts it where the engine could not be told.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from casework.api import detail, fork_source, submission
from casework.api.access import Caller
from casework.api.fork_edits import INPUT, check_values
from casework.api.fork_plan import Plan, Wanted, planned
from casework.api.fork_source import Source, latest_outputs
from casework.api.requests import ForkRun
from casework.api.services import Services
from casework.durable.contracts import Carried, Fork
from casework.durable.forking import beginning
from casework.durable.starting import fork_of, packed
from casework.errors import FieldsError, NotFoundError, StateError
from casework.graph.bundle import PinnedWorkflow
from casework.projection import ContextEntry
from casework.store import forks, runs, workflows
from casework.store.database import Connection
from casework.store.rows import RunRow
from casework.store.writers import write_context
from casework.values import content_hash, dumps, instant


@dataclass(frozen=True)
class Forked:
    """A fork: its row, where it came from, and whether it is new."""

    row: RunRow
    fork: Fork
    created: bool


async def fork(services: Services, caller: Caller, run_id: UUID, body: ForkRun, key: str | None) -> Forked:
    """The fork of a run that `body` asks for; the same key and body is the same fork.

    Raises:
        NotFoundError: there is no such run, or step.
        StateError: it cannot be forked there.
        FieldsError: an edit does not hold; nothing was written.
        IdempotencyConflictError: the key was used with another body.
    """
    check_values(body.context)
    new_id = submission.run_id_of(caller.tenant, caller.name, key)
    request_hash = content_hash({"fork": str(run_id), "by": caller.name, **body.model_dump()})
    async with services.db.transaction() as conn:
        known = await runs.get(conn, caller.tenant, new_id) if key is not None else None
    if known is None and body.model is not None:
        await _check_model(services, caller, run_id, body.workflow_version, body.model)
    async with services.db.transaction() as conn:
        if known is not None:
            row, created = submission.the_same(known, request_hash, key), False
        else:
            order = await _order(conn, services, caller, run_id, body)
            row, created = await _write(conn, services, caller, order, (new_id, request_hash))
        seed: Any = await forks.seed_of(conn, caller.tenant, row.run_id)
    if row.status == "PENDING":
        await submission.start_quietly(services, row)
    return Forked(row, fork_of(seed), created)


async def _check_model(services: Services, caller: Caller, run_id: UUID, version: int | None, model: str) -> None:
    """By itself and first: a provider may take seconds to look up, and meanwhile no row of the run is to be locked."""
    async with services.db.transaction() as conn:
        row = await detail.found(conn, caller.tenant, run_id)
        pinned = await _version(conn, row, version or row.workflow_version)
    await submission.check_model(services, pinned, model)


@dataclass(frozen=True)
class _Order:
    source: Source
    wanted: Wanted
    plan: Plan
    model: str | None


async def _order(conn: Connection, services: Services, caller: Caller, run_id: UUID, body: ForkRun) -> _Order:
    source = await fork_source.source_of(conn, caller.tenant, run_id)
    row = source.row
    if row.parent_run_id is None and await workflows.latest(conn, row.tenant, row.workflow_name) is None:
        raise StateError(f"Workflow {row.workflow_name!r} was deleted, so no new run of it is started. Apply it again.")
    version = body.workflow_version or row.workflow_version
    wanted = Wanted(version, await _version(conn, row, version), body.context)
    # In a thread: to walk through thousands of visits takes a second, in which others are to be answered.
    plan = await asyncio.to_thread(planned, source, wanted, body.step, services.app.toolbox)
    return _Order(source, wanted, plan, body.model or row.model)


async def _version(conn: Connection, row: RunRow, version: int) -> PinnedWorkflow:
    try:
        return await fork_source.graph_of(conn, row, version)
    except NotFoundError as error:
        raise FieldsError(str(error), [{"field": "workflow_version", "message": str(error)}]) from None


async def _write(
    conn: Connection, services: Services, caller: Caller, order: _Order, identity: tuple[UUID, str]
) -> tuple[RunRow, bool]:
    """The row, the seed, and what is taken over."""
    (new_id, request_hash), source, plan, now = identity, order.source.row, order.plan, datetime.now(UTC)
    row, created = await runs.create_pending(
        conn,
        runs.NewRun(
            tenant=source.tenant,
            run_id=new_id,
            workflow_name=source.workflow_name,
            workflow_version=order.wanted.version,
            user=source.user_id,
            actor=caller.name,
            request=plan.request,
            request_hash=request_hash,
            turn_limit=source.turn_limit,
            model=order.model,
            policy_adoption=order.wanted.pinned.policy_adoption,
            task_queue=services.runs.task_queue,
            at=now,
            forked_from_run_id=source.run_id,
            forked_from_path=plan.fork.path,
        ),
    )
    if created:
        await forks.take_over(conn, source.tenant, source.run_id, new_id, plan.taken)
        outputs = await _outputs(conn, order, new_id, now)
        carried = beginning(plan.state, plan.position, outputs, now)
        _check_size(order, carried)
        await forks.keep_seed(conn, source.tenant, new_id, packed(carried, plan.fork))
    return row, created


async def _outputs(conn: Connection, order: _Order, new_id: UUID, now: datetime) -> list[ContextEntry]:
    """Write the edited values as outputs of the run itself; of each key the one that counts."""
    made = {}
    for key, row in latest_outputs(order.plan.taken.outputs).items():
        made[key] = ContextEntry(row.path, key, row.version, row.value, instant(row.created_at))
    for key, value in order.wanted.edits.items():
        if key != INPUT:
            version = made[key].version if key in made else 0
            made[key] = ContextEntry("", key, version, value, instant(now))
            await write_context(conn, order.source.row.tenant, new_id, made[key])
    return list(made.values())


def _check_size(order: _Order, carried: Carried) -> None:
    """That the engine can take the start: workflow, input and state travel together.

    Raises:
        StateError: they are too large.
    """
    parts = (order.plan.request, order.wanted.pinned.to_plain(), packed(carried, order.plan.fork))
    size = sum(len(dumps(part).encode()) for part in parts)
    limit = submission.START_LIMIT - submission.START_MARGIN
    if size > limit:
        edits = " or with smaller edits" if order.wanted.edits else ""
        raise StateError(
            f"A fork of run {order.source.row.run_id} would begin with {size:,} bytes of workflow, input and outputs "
            f"(input and last output count twice), and {limit:,} is the limit. Fork from an earlier step{edits}, or "
            "start another run with a smaller input."
        )
