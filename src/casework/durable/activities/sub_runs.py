"""The activity that makes a SUBWORKFLOW's run ready: its version, its input, its row, all before it is started."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from temporalio import activity

from casework.durable import contracts
from casework.durable.activities.operation import operation
from casework.durable.activities.services import Services, recorded, run_id
from casework.durable.contracts import SubRun, SubRunReply
from casework.errors import CaseworkError, FatalError
from casework.graph import templates
from casework.graph.bundle import PinnedWorkflow
from casework.graph.json_schemas import misfits
from casework.store import projection, runs, workflows
from casework.store.database import Connection
from casework.trees.bundle import Pinned, pinned_from_plain
from casework.values import content_hash


class SubRunActivity:
    """`casework.open_sub_run`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=contracts.OPEN_SUB_RUN)
    @operation
    async def open_sub_run(self, call: SubRun) -> SubRunReply:
        """Write the row of the sub-run PENDING, pinned to what its parent is pinned to. Doing it again changes nothing.

        Raises:
            StoreUnavailableError: the database cannot be reached.
            FatalError: the parent's bundle does not have it.
        """
        plain, pinned = await self._bundle(call)
        try:
            given = dict(templates.render_all(call.arguments, call.context))
            error = _misfit(pinned, given)
        except CaseworkError as refused:
            given, error = {}, str(refused)
        owner = call.owner
        async with recorded(self._services.db, owner, call.path), self._services.db.transaction() as conn:
            await projection.apply(conn, owner.tenant, run_id(owner), call.outbox)
            if error is not None:
                return SubRunReply(0, {}, error)
            version = await _version(conn, call, plain, pinned)
            await runs.create_pending(conn, _row(call, pinned, version, given))
        return SubRunReply(version, given)

    async def _bundle(self, call: SubRun) -> tuple[dict[str, Any], Pinned]:
        parent = await self._services.bundle(call.owner.tenant, call.workflow, call.workflow_version)
        if not isinstance(parent, PinnedWorkflow) or call.name not in parent.workflows:
            raise FatalError(f"workflow {call.workflow!r} in version {call.workflow_version} holds no {call.name!r}")
        plain = parent.sub_bundle(call.name)
        return plain, pinned_from_plain(plain)


def _misfit(pinned: Pinned, given: dict[str, Any]) -> str | None:
    found = [] if pinned.input_schema is None else misfits(pinned.input_schema, given, limit=1)
    return f"input{'.' if found[0].field else ''}{found[0].field}: {found[0].message}" if found else None


async def _version(conn: Connection, call: SubRun, plain: dict[str, Any], pinned: Pinned) -> int:
    """The version with this very content, also where a newer one is there; one made for this run, if there is none."""
    tenant, made = call.owner.tenant, pinned.hash()
    found = await workflows.version_of(conn, tenant, pinned.name, made)
    if found is not None:
        return found
    return await workflows.publish_for_session(conn, tenant, pinned.name, plain, made, UUID(call.run_id))


def _row(call: SubRun, pinned: Pinned, version: int, given: dict[str, Any]) -> runs.NewRun:
    return runs.NewRun(
        tenant=call.owner.tenant,
        run_id=UUID(call.run_id),
        workflow_name=pinned.name,
        workflow_version=version,
        user=call.user,
        request=given,
        request_hash=content_hash(given),
        turn_limit=call.turn_limit,
        model=call.model,
        policy_adoption=pinned.policy_adoption,
        actor=call.actor or None,
        task_queue=activity.info().task_queue,
        parent_run_id=run_id(call.owner),
        parent_path=call.path,
    )
