"""Applying and deleting: admit, write the generation, publish the workflows that changed, start the runs of sessions.

All of a request happens in one database transaction, one request of a tenant after the other; the runs are started
when it has committed, and what cannot be started then is left to the sweep, as with every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from casework import ids
from casework.api import submission
from casework.api.access import Caller
from casework.api.inputs import check_bounds, check_input
from casework.api.requests import StartRun
from casework.api.resources_parsing import kind_of
from casework.api.resources_together import Together
from casework.api.services import Services
from casework.errors import FieldsError, InputError, ManifestError, NotFoundError, StateError
from casework.graph.bundle import PinnedWorkflow
from casework.graph.kinds import WorkflowSession
from casework.graph.manifests import AiWorkflow, Resource
from casework.graph.words import nearest
from casework.store import resources, runs, workflows
from casework.store.database import Connection
from casework.store.resources import NewResource, Outcome, ResourceRow
from casework.store.rows import RunRow
from casework.trees.bundle import Pinned, pinned_from_plain
from casework.values import content_hash


@dataclass
class Report:
    """What a request did: each resource with its outcome, workflow versions by name, runs to be started."""

    applied: list[tuple[ResourceRow, Outcome]] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)
    started: list[RunRow] = field(default_factory=list)


class _DryRunError(Exception):
    """Ends the transaction of a dry run, so that nothing of it stays."""


async def apply(services: Services, caller: Caller, found: Sequence[Resource], *, dry_run: bool = False) -> Report:
    """Apply resources, all or none.

    Raises:
        ManifestError: they do not hold together with what is there.
        InputError: a session's input does not fit its workflow.
        StateError: a session of that name has another spec.
    """
    report = Report()
    try:
        async with services.db.transaction() as conn:
            await resources.lock(conn, caller.tenant)
            await _definitions(conn, services, caller, found, report)
            for one in found:
                if isinstance(one, WorkflowSession):
                    await _session(conn, services, caller, one, report)
            if dry_run:
                raise _DryRunError
    except _DryRunError:
        return report
    for row in report.started:
        await submission.start_quietly(services, row)
    return report


async def _definitions(
    conn: Connection, services: Services, caller: Caller, found: Sequence[Resource], report: Report
) -> None:
    incoming = [one for one in found if not isinstance(one, WorkflowSession)]
    if not incoming:
        return
    pinned = _admitted(services, await resources.definitions(conn, caller.tenant), incoming)
    for one in incoming:
        report.applied.append(await resources.add(conn, _new(one, caller)))
    for name, made in sorted(pinned.items()):
        report.published.update(await _published(conn, caller.tenant, name, made))


def _admitted(
    services: Services, rows: Sequence[ResourceRow], incoming: Sequence[Resource]
) -> dict[str, PinnedWorkflow]:
    """The workflows that are applied, and those that refer to what is. One that did not hold before may stay so.

    Raises:
        ManifestError: what is applied does not hold, or breaks a workflow that held.
    """
    before, after = Together.of(services.app, rows), Together.of(services.app, rows, incoming)
    own = [one.name for one in incoming if isinstance(one, AiWorkflow)]
    pinned = dict(after.admitted(own, incoming))
    for name in after.touched(incoming):
        if name in own:
            continue
        try:
            pinned |= after.admitted([name])
        except ManifestError:
            if before.holds(name):
                raise
    return pinned


async def _published(conn: Connection, tenant: str, name: str, made: PinnedWorkflow) -> dict[str, int]:
    """The new version of a workflow; nothing where the newest is this one."""
    before = await workflows.latest_hash(conn, tenant, name)
    if before is not None and before[1] == made.hash():
        return {}
    return {name: await workflows.publish(conn, tenant, name, made.to_plain(), made.hash())}


def _new(one: Resource, caller: Caller) -> NewResource:
    manifest = one.model_dump(by_alias=True)
    return NewResource(caller.tenant, kind_of(one), one.name, content_hash(manifest), manifest, caller.name)


async def _session(
    conn: Connection, services: Services, caller: Caller, session: WorkflowSession, report: Report
) -> None:
    new = _new(session, caller)
    known = await resources.current(conn, caller.tenant, new.kind, new.name)
    if known is not None and known.hash != new.hash:
        raise StateError(
            f"WorkflowSession {new.name!r} was started with another spec, and a session's spec does not change. "
            "Apply it under another name, or delete this one when its run has ended.",
            details={"run_id": str(known.run_id)},
        )
    if known is not None:
        report.applied.append((known, "unchanged"))
        return
    generation = await resources.last_generation(conn, caller.tenant, new.kind, new.name) + 1
    run_id = ids.session_run_id(caller.tenant, new.name, generation)
    request = StartRun(workflow=session.spec.workflow_ref, input=session.spec.input)
    version, pinned = await _pinned(conn, caller.tenant, session)
    if session.spec.max_loops is not None:
        limited = _limited(pinned, session, session.spec.max_loops)
        bundle, digest = limited.to_plain(), limited.hash()
        version = await workflows.publish_for_session(conn, caller.tenant, pinned.name, bundle, digest, run_id)
        pinned = limited
    identity = (run_id, caller.name, content_hash({"session": new.hash}))
    row, _ = await runs.create_pending(conn, submission.new_run(services, caller, request, (version, pinned), identity))
    report.applied.append(
        await resources.add(conn, NewResource(new.tenant, new.kind, new.name, new.hash, new.manifest, new.by, run_id))
    )
    report.started.append(row)


async def _pinned(conn: Connection, tenant: str, session: WorkflowSession) -> tuple[int, Pinned]:
    """The newest version of the session's workflow, once the input fits it."""
    name = session.spec.workflow_ref
    check_bounds(session.spec.input)
    found = await workflows.latest(conn, tenant, name)
    if found is None:
        known = await workflows.names(conn, tenant)
        raise InputError(
            f"{_at(session, 'workflowRef')}: there is no workflow {name!r}; "
            f"there are {', '.join(known) or 'none yet'}.{nearest(name, known)}",
            field="spec.workflowRef",
        )
    version, bundle = found
    pinned = pinned_from_plain(bundle)
    try:
        check_input(name, pinned.input_schema, session.spec.input)
    except FieldsError as error:
        placed = [{**one, "field": _in_request(session, one["field"])} for one in error.errors]
        raise FieldsError(str(error), placed) from None
    return version, pinned


def _at(session: WorkflowSession, field: str) -> str:
    """The session's field, with its place in the request: told before what is wrong with it."""
    place = f"{session.origin.at(('spec', field))}: " if session.origin else ""
    return f"{place}WorkflowSession {session.name!r}: {field}"


def _in_request(session: WorkflowSession, field: str) -> str:
    """A field such as `input.amount` by its place in the request."""
    return f"{session.origin.at(('spec',))}.{field}" if session.origin else field


def _limited(pinned: Pinned, session: WorkflowSession, loops: int) -> PinnedWorkflow:
    """The workflow with the session's own limit."""
    if not isinstance(pinned, PinnedWorkflow):
        raise InputError(
            f"{_at(session, 'maxLoops')}: {pinned.name!r} is a free tree, which has no loops. Remove maxLoops.",
            field="spec.maxLoops",
        )
    spec = pinned.workflow.spec.model_copy(update={"max_loops": loops})
    workflow = pinned.workflow.model_copy(update={"spec": spec})
    return replace(pinned, workflow=workflow)


async def delete(services: Services, caller: Caller, kind: str, name: str) -> int | None:
    """Delete a resource; of a workflow, the newest version that is hidden from new starts now.

    Raises:
        NotFoundError: there is no such resource, and no published workflow of that name.
        StateError: another resource needs it, or its run is open.
    """
    async with services.db.transaction() as conn:
        await resources.lock(conn, caller.tenant)
        row = await resources.current(conn, caller.tenant, kind, name)
        if row is not None and row.run_id is not None:
            await _check_ended(conn, caller.tenant, name, row)
        left = await _let_go(conn, services, caller, kind, name)
        removed = await resources.remove(conn, caller.tenant, kind, name, caller.name)
        hidden = None
        if kind == "AiWorkflow" and (last := await workflows.latest_hash(conn, caller.tenant, name)) is not None:
            hidden = last[0]
            await workflows.remove(conn, caller.tenant, name, caller.name)
        for user, pinned in left.items() if removed else ():
            await _published(conn, caller.tenant, user, pinned)
        if not removed and hidden is None:
            raise NotFoundError(f"There is no {kind} {name!r}. `casework get {kind}` lists what there is.")
    return hidden


async def _check_ended(conn: Connection, tenant: str, name: str, row: ResourceRow) -> None:
    assert row.run_id is not None
    run = await runs.get(conn, tenant, row.run_id)
    if run is not None and run.ended_at is None:
        raise StateError(
            f"The run of WorkflowSession {name!r} is {run.status}. Cancel it first: casework runs cancel {run.run_id}.",
            details={"run_id": str(run.run_id), "run_status": run.status},
        )


async def _let_go(
    conn: Connection, services: Services, caller: Caller, kind: str, name: str
) -> Mapping[str, PinnedWorkflow]:
    """The workflows that refer to it, as they are without it: with what the application has of that name.

    Raises:
        StateError: one of them cannot be without it.
    """
    if kind not in ("AiWorkflow", "AiAgent", "LlmProvider"):
        return {}
    rows = await resources.definitions(conn, caller.tenant)
    before = Together.of(services.app, rows)
    after = Together.of(services.app, [row for row in rows if (row.kind, row.name) != (kind, name)])
    if kind == "AiWorkflow":
        after.workflows.pop(name, None)
    made: dict[str, PinnedWorkflow] = {}
    for user in before.users_of(kind, name):
        try:
            made |= after.admitted([user])
        except ManifestError as error:
            if not before.holds(user):
                continue
            told = f"{kind} {name!r} is used by workflow {user!r}: {error} Change or delete that one first."
            raise StateError(told) from None
    return made
