"""Forks: what a run's rows tell of its course, rows that another run takes over, and what that one begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework import ids
from casework.store import queries
from casework.store.database import Connection
from casework.store.rows import StepRow
from casework.values import Plain

_SQL = queries.load("forks")
MOST_FORKS = 100
"""Most forks of one run that are listed."""


@dataclass(frozen=True, slots=True)
class VisitEvent:
    """A visit has begun, succeeded or failed; `error` is why it failed."""

    path: str
    kind: str
    error: str | None


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One output of a node, of each visit."""

    context_id: UUID
    path: str
    key: str
    version: int
    value: Plain
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a message is, and whose step wrote it."""

    message_id: UUID
    path: str
    position: int
    role: str


@dataclass(frozen=True, slots=True)
class ForkRow:
    """A run that was forked from another, from the step at `path`."""

    run_id: UUID
    path: str
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of a run that a fork takes over."""

    steps: Sequence[StepRow] = ()
    messages: Sequence[Placed] = ()
    outputs: Sequence[OutputRow] = ()


async def visits(conn: Connection, tenant: str, run_id: UUID) -> list[VisitEvent]:
    """How the visits of a run began and ended, in order."""
    return await queries.many(conn, _SQL["visits"], {"tenant": tenant, "run_id": run_id}, VisitEvent)


async def branches(conn: Connection, tenant: str, run_id: UUID) -> list[str]:
    """The paths at which a person was asked, or a sub-run was started, in order."""
    found = await queries.dicts(conn, _SQL["branches"], {"tenant": tenant, "run_id": run_id})
    return [each["path"] for each in found]


async def outputs(conn: Connection, tenant: str, run_id: UUID) -> list[OutputRow]:
    """All outputs of a run's nodes, of each key the latest last."""
    return await queries.many(conn, _SQL["outputs"], {"tenant": tenant, "run_id": run_id}, OutputRow)


async def placed(conn: Connection, tenant: str, run_id: UUID) -> list[Placed]:
    """Where the messages of a run's transcript are, in order."""
    return await queries.many(conn, _SQL["messages"], {"tenant": tenant, "run_id": run_id}, Placed)


async def take_over(conn: Connection, tenant: str, source: UUID, run_id: UUID, taken: Taken) -> None:
    """Copy rows of `source` to `run_id`, under the same paths and so under ids of its own. They count nothing.

    The policy that was in use by then goes with them.
    """
    steps = {step.step_id: ids.step_id(run_id, step.path) for step in taken.steps}
    messages = {each.message_id: ids.message_id(run_id, each.path, each.position) for each in taken.messages}
    outputs = {each.context_id: ids.derived_id(run_id, each.path, f"context:{each.key}") for each in taken.outputs}
    copies = (_SQL["take_steps"], steps), (_SQL["take_messages"], messages), (_SQL["take_outputs"], outputs)
    for query, pairs in copies:
        params = {"tenant": tenant, "run_id": run_id, "old": list(pairs), "new": list(pairs.values())}
        await queries.run(conn, query, params)
    ended = [step.ended_at for step in taken.steps if step.ended_at is not None]
    if ended:
        params = {"tenant": tenant, "run_id": run_id, "source": source, "until": max(ended)}
        await queries.run(conn, _SQL["take_policies"], params)


async def keep_seed(conn: Connection, tenant: str, run_id: UUID, seed: Mapping[str, Plain]) -> None:
    """Write what a fork begins with, once."""
    await queries.run(conn, _SQL["keep_seed"], queries.Writing(tenant=tenant, run_id=run_id).json(seed=seed))


async def seed_of(conn: Connection, tenant: str, run_id: UUID) -> Plain | None:
    """What a fork begins with; None of a run that is none."""
    return await queries.value(conn, _SQL["seed"], {"tenant": tenant, "run_id": run_id})


async def of_run(conn: Connection, tenant: str, run_id: UUID) -> list[ForkRow]:
    """The runs that were forked from a run, the oldest first."""
    params = {"tenant": tenant, "run_id": run_id, "limit": MOST_FORKS}
    return await queries.many(conn, _SQL["forks"], params, ForkRow)
