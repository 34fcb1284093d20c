"""The ledger of steps: claim, act, commit. What makes a repeat harmless.

A claim sets the step's row STARTED and takes the next attempt number, or finds the row terminal and says so. The
number is a fence: a commit applies only while it is the row's own. Whoever comes later than a newer claim, or than the
engine's giving up, has its result kept on its attempt's row as LATE, where nobody uses it. Every function takes the
run's row lock first (see `casework.store`), so of two claimers or committers one is first and the other sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal
from uuid import UUID

from casework import ids
from casework.errors import ConflictError
from casework.store import queries
from casework.store.attempts import AttemptKey, Figures, end_attempt, lose_attempts
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.results import NOOP, STALE, WRITTEN, WriteResult
from casework.store.rollups import Change
from casework.store.runlock import lock_run
from casework.values import Plain, content_hash

_SQL = queries.load("ledger")


@dataclass(frozen=True, slots=True)
class StepClaim:
    """What is about to be done, and at which path."""

    tenant: str
    run_id: UUID
    path: str
    kind: Literal["tool", "model"]
    name: str
    tool_version: str
    arguments: Plain
    turn: int
    node: str

    @property
    def hash(self) -> str:
        """Of all that makes another act: kind, name, version and canonical arguments."""
        return content_hash([self.kind, self.name, self.tool_version, self.arguments])


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim.

    claimed: act, and commit as `attempt`. committed: it is done; `result` is in the ledger; do not act. closed: it
    will not be done, for the reason `error`: the step was given up or refused, or its run has ended.
    """

    step_id: UUID
    attempt: int
    state: Literal["claimed", "committed", "closed"]
    result: Plain = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StepCommit:
    """The end of an attempt that ends its step: COMPLETED, or FAILED with what the model is told."""

    tenant: str
    run_id: UUID
    path: str
    attempt: int
    state: Literal["COMPLETED", "FAILED"]
    result: Plain
    error: str | None
    latency_ms: int
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Case:
    """The request that the run was started with (None: no such run), and the latest COMPLETED result of each tool."""

    request: Plain
    evidence: dict[str, Plain]


@dataclass(frozen=True, slots=True)
class _Stored:
    state: str
    hash: str | None
    attempt: int
    result: Plain
    error: str | None


@dataclass(frozen=True, slots=True)
class _Attempt:
    attempt: int


@dataclass(frozen=True, slots=True)
class _Step:
    kind: str
    turn: int
    name: str


@dataclass(frozen=True, slots=True)
class _Compared(_Step):
    current: int
    state: str
    outcome: str | None
    same: bool | None
    own: bool | None
    """Whether the row was ended by this attempt itself, and not by the engine's close."""


async def claim(conn: Connection, step: StepClaim) -> Claimed:
    """Take the next attempt of a step, unless it is terminal or its run has ended.

    An earlier attempt that reported nothing is closed LOST, with an event `attempt_lost:<n>`.

    Raises:
        ConflictError: the path was claimed for another act (kind, name, version or arguments), or there is no such run.
    """
    run = await lock_run(conn, step.tenant, step.run_id)
    step_id = ids.step_id(step.run_id, step.path)
    if run.terminal:
        return await _read_back(conn, step, step_id) or Claimed(step_id, 0, "closed", error=f"the run is {run.status}")
    taken = await queries.one(conn, _SQL["claim"], _claim_params(step, step_id), _Attempt)
    if taken is None:
        stored = await _read_back(conn, step, step_id)
        assert stored is not None  # the upsert met this row under the run's lock
        return stored
    if taken.attempt > 1:
        await lose_attempts(conn, step.tenant, step.run_id, step.path, taken.attempt, "no report before the next claim")
    return Claimed(step_id, taken.attempt, "claimed")


def _claim_params(step: StepClaim, step_id: UUID) -> queries.Writing:
    return queries.Writing(
        tenant=step.tenant,
        step_id=step_id,
        run_id=step.run_id,
        path=step.path,
        kind=step.kind,
        name=step.name,
        node=step.node,
        turn=step.turn,
        tool_version=step.tool_version,
        hash=step.hash,
    ).json(arguments=step.arguments)


async def found(conn: Connection, step: StepClaim) -> Claimed | None:
    """What an earlier claim of the step has come to, if it has come to an end.

    Raises:
        ConflictError: the path was claimed for another act.
    """
    return await _read_back(conn, step, ids.step_id(step.run_id, step.path))


async def _read_back(conn: Connection, step: StepClaim, step_id: UUID) -> Claimed | None:
    """What stands in the ledger; None where nothing does, or a row that the ended run left open."""
    stored = await queries.one(conn, _SQL["read_back"], {"tenant": step.tenant, "step_id": step_id}, _Stored)
    if stored is None:
        return None
    if stored.hash is not None and stored.hash != step.hash:
        raise ConflictError(
            f"Step {step.path} of run {step.run_id} was claimed for another act: same path, other tool, version or "
            f"arguments. Its result is not returned for {step.name!r} version {step.tool_version}. Start a new run."
        )
    if stored.state == "COMPLETED":
        return Claimed(step_id, stored.attempt, "committed", stored.result)
    if stored.state == "FAILED":
        return Claimed(step_id, stored.attempt, "closed", stored.result, stored.error)
    return None


async def commit(conn: Connection, done: StepCommit) -> WriteResult:
    """Write the end of a step, if `attempt` still is the row's own and the row is STARTED.

    noop: this very commit is there already. stale: a newer attempt or the engine's close was first; the result is
    kept on the attempt's row as LATE (event `attempt_late:<n>`). Do not raise inside the same transaction then, or that
    record is rolled back.

    Raises:
        ConflictError: the attempt was never claimed, or committed with another result.
    """
    await lock_run(conn, done.tenant, done.run_id)
    params = _commit_params(done)
    step = await queries.one(conn, _SQL["commit"], params, _Step)
    if step is None:
        return await _not_applied(conn, done, params)
    calls = Change(model_calls=int(step.kind == "model"), tool_calls=int(step.kind == "tool"))
    await end_attempt(conn, _at(done, step.turn), done.state, _figures(done), calls)
    return WRITTEN


def _commit_params(done: StepCommit) -> queries.Writing:
    return queries.Writing(
        tenant=done.tenant,
        step_id=ids.step_id(done.run_id, done.path),
        attempt=done.attempt,
        state=done.state,
        error=done.error,
    ).json(result=done.result)


def _at(done: StepCommit, turn: int) -> AttemptKey:
    return AttemptKey(done.tenant, done.run_id, done.path, done.attempt, turn)


def _figures(done: StepCommit, *, result: Plain = None) -> Figures:
    return Figures(done.error, done.latency_ms, done.tokens_in, done.tokens_out, done.cost, result)


async def _not_applied(conn: Connection, done: StepCommit, params: queries.Writing) -> WriteResult:
    """Zero rows, classified: equal, late, or a conflict."""
    stored = await queries.one(conn, _SQL["compare"], params, _Compared)
    where = f"attempt {done.attempt} of step {done.path} of run {done.run_id}"
    if stored is None or not 0 < done.attempt <= stored.current:
        raise ConflictError(f"Nothing claimed {where}. Claim the step before committing it.")
    if stored.own:
        if stored.same:
            return NOOP
        raise ConflictError(f"The ledger holds another result for {where}; it stands, and this one is not written.")
    if stored.outcome == "LATE":
        return STALE
    return await _keep_late(conn, done, stored)


async def _keep_late(conn: Connection, done: StepCommit, stored: _Compared) -> WriteResult:
    await end_attempt(conn, _at(done, stored.turn), "LATE", _figures(done, result=done.result))
    data = {"name": stored.name, "attempt": done.attempt, "current": stored.current, "state": stored.state}
    await add_locked(conn, done.tenant, done.run_id, done.path, f"attempt_late:{done.attempt}", data)
    return WriteResult(1, "stale")


async def attempt_failed(
    conn: Connection,
    tenant: str,
    run_id: UUID,
    path: str,
    attempt: int,
    error: str,
    latency_ms: int,
    *,
    tokens_in: int = 0,
    tokens_out: int = 0,
    cost: Decimal = Decimal(0),
) -> WriteResult:
    """A failure that is tried again: the row stays STARTED and shows the error, the attempt's row says FAILED.

    Raises:
        ConflictError: the attempt was never claimed.
    """
    failed = StepCommit(tenant, run_id, path, attempt, "FAILED", None, error, latency_ms, tokens_in, tokens_out, cost)
    await lock_run(conn, tenant, run_id)
    params = _commit_params(failed)
    before = await queries.one(conn, _SQL["compare"], params, _Compared)
    if before is not None and before.outcome in {"COMPLETED", "FAILED", "LATE"}:
        return STALE if before.outcome == "LATE" else NOOP
    step = await queries.one(conn, _SQL["note_error"], params, _Step)
    if step is None:
        return await _not_applied(conn, failed, params)
    await end_attempt(conn, _at(failed, step.turn), "FAILED", _figures(failed))
    data = {"name": step.name, "attempt": attempt, "error": error}
    await add_locked(conn, tenant, run_id, path, f"attempt_failed:{attempt}", data)
    return WRITTEN


async def lock_attempt(conn: Connection, tenant: str, run_id: UUID, path: str, attempt: int) -> bool:
    """Hold run and step to the end of the transaction; whether the attempt still is the row's own, and may act."""
    run = await lock_run(conn, tenant, run_id)
    key = {"tenant": tenant, "step_id": ids.step_id(run_id, path), "attempt": attempt}
    return bool(await queries.value(conn, _SQL["lock_attempt"], key)) and not run.terminal


async def case_of(conn: Connection, tenant: str, run_id: UUID) -> Case:
    """What a tool may look at."""
    case = await queries.one(conn, _SQL["case_of"], {"tenant": tenant, "run_id": run_id}, Case)
    assert case is not None  # a query without a table in front has one row
    return case
