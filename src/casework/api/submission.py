"""Starting a run: check the request, write the row PENDING, then tell the engine.

The row is the promise. If the engine cannot be reached the answer is still that the run was accepted; a sweep starts
what stays PENDING. The same idempotency key finds the same row before anything else is looked at, so a repeat is
answered the same even after the workflow has got a newer version.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

from casework.api.access import Caller, Role
from casework.api.inputs import check_bounds, check_input
from casework.api.requests import StartRun
from casework.api.services import Services
from casework.durable.starting import start_with_seed
from casework.errors import (
    AccessError,
    CaseworkError,
    FatalError,
    FieldsError,
    IdempotencyConflictError,
    InputError,
    StateError,
    UnreachableError,
)
from casework.graph.state import DEFAULT_TURN_LIMIT
from casework.ids import IDEMPOTENCY_KEY_LIMIT, run_id_for_key
from casework.models.catalogue import Models
from casework.store import runs, workflows
from casework.store.database import Connection
from casework.store.rows import RunRow
from casework.trees.bundle import Pinned, pinned_from_plain
from casework.values import content_hash, dumps

START_MARGIN = 10_000
"""What a start holds beside workflow and input, in bytes: names of at most some hundred characters."""
START_LIMIT = 1_000_000
"""Largest input of a Temporal workflow, in bytes: what is larger the engine refuses, however often it is sent."""

log = logging.getLogger(__name__)

ENGINE_WAIT_S = 5.0
"""How long an answer waits for the engine, in seconds; then the sweep has to start the run."""


async def submit(services: Services, caller: Caller, request: StartRun, key: str | None) -> tuple[RunRow, bool]:
    """The run of `request`, and whether it is new.

    Raises:
        InputError: a field does not hold; nothing was started.
        IdempotencyConflictError: the key was used with another body.
        AccessError: the caller may not act for another user.
    """
    user = _user(caller, request)
    check_bounds(request.input)
    run_id = run_id_of(caller.tenant, user, key)
    request_hash = content_hash({"user": user, **request.model_dump(exclude={"on_behalf_of"})})
    async with services.db.transaction() as conn:
        known = await runs.get(conn, caller.tenant, run_id) if key is not None else None
        found = None if known else await _checked(conn, caller.tenant, request)
    if found is not None and request.model is not None:
        await check_model(services, found[1], request.model)
    if known is not None:
        row, created = the_same(known, request_hash, key), False
    else:
        assert found is not None
        row, created = await _write(services, caller, request, found, (run_id, user, request_hash))
    if row.status == "PENDING":
        await start_quietly(services, row)
    return row, created


def _user(caller: Caller, request: StartRun) -> str:
    user = request.on_behalf_of
    if user is None or user == caller.name:
        return caller.name
    if not caller.has(Role.OPERATOR):
        raise AccessError(f"Only an operator may act for {user!r}; {caller.name!r} is none. Leave on_behalf_of out.")
    return user


def run_id_of(tenant: str, user: str, key: str | None) -> UUID:
    """The id of a run that `user` asks for under an idempotency key; a new one without.

    Raises:
        InputError: the key is too long.
    """
    if key is None:
        return uuid4()
    if len(key) > IDEMPOTENCY_KEY_LIMIT:
        raise InputError(
            f"The Idempotency-Key has {len(key)} characters. Use at most {IDEMPOTENCY_KEY_LIMIT}.",
            field="Idempotency-Key",
        )
    return run_id_for_key(tenant, user, key)


def the_same(row: RunRow, request_hash: str, key: str | None) -> RunRow:
    """`row`, which was found under the key.

    Raises:
        IdempotencyConflictError: it was asked for with another body.
    """
    if row.request_hash != request_hash:
        raise IdempotencyConflictError(
            f"Idempotency-Key {key!r} was used for run {row.run_id} with another body. Send that body, or another key.",
            details={"run_id": str(row.run_id)},
        )
    return row


async def _checked(conn: Connection, tenant: str, request: StartRun) -> tuple[int, Pinned]:
    """The newest version of the workflow, once the input fits it."""
    found = await workflows.latest(conn, tenant, request.workflow)
    if found is None:
        raise _unknown(request.workflow, await workflows.names(conn, tenant))
    version, bundle = found
    pinned = pinned_from_plain(bundle)
    check_input(request.workflow, pinned.input_schema, request.input)
    return version, pinned


async def check_model(services: Services, pinned: Pinned, model: str) -> None:
    """That every agent of the workflow can be asked under this model; whether a key is there shows when it is asked.

    Raises:
        FieldsError: one cannot.
    """
    models = Models(services.app.scripts)
    try:
        for agent in pinned.agents.values():
            # In a thread: a provider that is not known by heart takes seconds to look up the first time.
            await asyncio.to_thread(models.for_agent, agent, pinned.providers, model)
    except FatalError as error:
        raise FieldsError(str(error), [{"field": "model", "message": str(error)}]) from None


def _unknown(name: str, known: Collection[str]) -> FieldsError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known) or 'none yet'}"
    text = f"There is no workflow {name!r}; {hint}"
    return FieldsError(text, [{"field": "workflow", "message": f"{name!r} is not known; {hint}"}])


async def _write(
    services: Services,
    caller: Caller,
    request: StartRun,
    found: tuple[int, Pinned],
    identity: tuple[UUID, str, str],
) -> tuple[RunRow, bool]:
    new = new_run(services, caller, request, found, identity)
    async with services.db.transaction() as conn:
        return await runs.create_pending(conn, new)


def new_run(
    services: Services,
    caller: Caller,
    request: StartRun,
    found: tuple[int, Pinned],
    identity: tuple[UUID, str, str],
) -> runs.NewRun:
    """The row to be written for a request whose input was checked; `identity` is its run, user and hash.

    Raises:
        InputError: input and workflow are too large to travel together.
    """
    version, pinned = found
    run_id, user, request_hash = identity
    _check_start(pinned, request)
    return runs.NewRun(
        tenant=caller.tenant,
        run_id=run_id,
        user=user,
        actor=caller.name,
        workflow_name=request.workflow,
        workflow_version=version,
        request=request.input,
        request_hash=request_hash,
        policy_adoption=pinned.policy_adoption,
        model=request.model,
        turn_limit=request.turn_limit or DEFAULT_TURN_LIMIT,
        task_queue=services.runs.task_queue,
    )


def _check_start(pinned: Pinned, request: StartRun) -> None:
    """That the engine can take the start: workflow and input travel together.

    Raises:
        InputError: they are too large.
    """
    own, workflow = (len(dumps(part).encode()) for part in (request.input, pinned.to_plain()))
    if own + workflow + START_MARGIN > START_LIMIT:
        raise InputError(
            f"The input of {own:,} bytes and workflow {request.workflow!r} of {workflow:,} bytes are over the limit of "
            f"{START_LIMIT - START_MARGIN:,} bytes for both. Send a smaller input, such as references to documents.",
            field="input",
        )


async def start(services: Services, row: RunRow) -> None:
    """Start the Temporal workflow of a row; one that is there already is left as it is.

    Raises:
        UnreachableError: the engine cannot be reached in time.
        FatalError: the engine refuses it for good, or the version of its workflow is gone.
    """
    async with services.db.transaction() as conn:
        bundle: Any = await workflows.get(conn, row.tenant, row.workflow_name, row.workflow_version)
        if bundle is None:
            raise FatalError(f"workflow {row.workflow_name!r} has no version {row.workflow_version} any more")
        begin = await start_with_seed(conn, row, bundle)
    try:
        await asyncio.wait_for(services.runs.start(begin, row.task_queue), ENGINE_WAIT_S)
    except TimeoutError:
        raise UnreachableError(
            f"Temporal did not take run {row.run_id} within {ENGINE_WAIT_S:g} s. Try again."
        ) from None


async def start_quietly(services: Services, row: RunRow) -> None:
    """`start`, or leave it to the sweep: it starts the run later, or closes one that the engine refuses for good."""
    try:
        await start(services, row)
    except CaseworkError as error:
        log.warning("run %s stays PENDING for the sweep: %s", row.run_id, error)


async def start_or_close(services: Services, row: RunRow) -> None:
    """`start`; a run that can never start is closed at once, as the sweep would close it.

    Raises:
        UnreachableError: the engine cannot be reached in time.
        StateError: it can never start; its row is FAILED with the reason.
    """
    try:
        await start(services, row)
    except (FatalError, InputError) as error:
        reason = f"it cannot be started: {error}"
        async with services.db.transaction() as conn:
            await runs.close_from_outside(conn, row.tenant, row.run_id, reason)
        raise StateError(
            f"Run {row.run_id} cannot be started and is FAILED now: {error}", details={"run_status": "FAILED"}
        ) from error
