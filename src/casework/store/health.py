"""How the database does, for whoever looks after it: can it be written to, who holds whom up, what work is in it.

All tenants together: this is about the installation. Each query is cheap on a full database: partial indexes of what
is open, and the server's own views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.errors import StoreUnavailableError
from casework.store import migrate, queries
from casework.store.database import Connection

_SQL = queries.load("health")
MOVED = (
    "agent_runs",
    "agent_context",
    "agent_steps",
    "agent_step_attempts",
    "agent_run_metrics",
    "agent_turn_metrics",
    "agent_reviews",
)
"""Tables in which the runtime moves rows that have a state."""
ADDED = ("agent_messages", "agent_review_decisions", "agent_events", "agent_logs", "agent_policy_uses")
"""Tables to which it adds rows that stay as they are."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. `most_connections`: those that ordinary logins can have."""

    in_recovery: bool
    read_only: bool
    connections: int
    most_connections: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The session that has waited longest for a lock, and the one that holds it. Times in seconds."""

    pid: int
    waits_s: float
    by_pid: int
    by_name: str
    by_state: str
    by_since_s: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of what is open, over all tenants."""

    pending: int
    running: int
    awaiting_review: int
    reviews: int
    oldest_review: datetime | None
    retrying: int
    oldest_retry: datetime | None
    failed: int
    runs_failed: int
    incidents: int


@dataclass(frozen=True, slots=True)
class QuietRun:
    """A run that should move and whose row has been still for a while."""

    tenant: str
    run_id: UUID
    status: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A step in flight, and when its row was last written."""

    run_id: UUID
    path: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that an incident holds, and why."""

    run_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class Condition:
    """What stands in the way of writing: nothing, if all of it is empty or false."""

    server: Server
    missing_migrations: tuple[str, ...]
    missing_rights: tuple[str, ...]
    blocked: Blocked | None


@dataclass(frozen=True, slots=True)
class _Right:
    right_name: str


async def condition(conn: Connection) -> Condition:
    """Whether runs can be written, in the role of `conn`; the rest of its transaction has the login's own rights."""
    server = await queries.one(conn, _SQL["server"], {}, Server)
    assert server is not None
    missing = tuple(await migrate.pending(conn))
    rights = await _missing_rights(conn)
    await queries.run(conn, _SQL["as_login"], {})
    return Condition(server, missing, rights, await queries.one(conn, _SQL["blocked"], {}, Blocked))


async def takes_no_writes(conn: Connection) -> bool:
    """Whether the server of `conn` is read-only: a standby, or one that was told to be."""
    return bool(await queries.value(conn, _SQL["takes_no_writes"], {}))


async def check_rights(conn: Connection) -> None:
    """That what a step writes can be written: asked before it acts again, so that it does not act for nothing.

    Raises:
        StoreUnavailableError: the role of `conn` lacks a right; names it.
    """
    if missing := await _missing_rights(conn):
        raise StoreUnavailableError(
            f"The database role lacks {', '.join(missing)}. Grant it; the step is not done again before."
        )


async def _missing_rights(conn: Connection) -> tuple[str, ...]:
    rows = await queries.many(conn, _SQL["missing_rights"], {"moved": list(MOVED), "added": list(ADDED)}, _Right)
    usable = await queries.value(conn, _SQL["schema_right"], {})
    return (*(() if usable else ("USAGE on schema agent_ops",)), *(row.right_name for row in rows))


async def work(conn: Connection, failed_since: datetime) -> Work:
    """What is open, and how many steps failed for good, and runs ended FAILED, since an instant."""
    found = await queries.one(conn, _SQL["work"], {"since": failed_since}, Work)
    assert found is not None
    return found


async def quiet(conn: Connection, before: datetime, limit: int) -> list[QuietRun]:
    """Runs that should move and whose rows were last written before an instant, the longest still first."""
    return await queries.many(conn, _SQL["quiet"], {"before": before, "limit": limit}, QuietRun)


async def held(conn: Connection, limit: int) -> list[HeldRun]:
    """Runs that an incident holds, the oldest first."""
    return await queries.many(conn, _SQL["held"], {"limit": limit}, HeldRun)


async def claimed(conn: Connection, run_ids: Sequence[UUID]) -> list[Claimed]:
    """Steps in flight of these runs."""
    return await queries.many(conn, _SQL["claimed"], {"run_ids": list(run_ids)}, Claimed)
