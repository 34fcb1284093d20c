"""Whether the rows of runs agree with each other: nothing missing, nothing twice. Read by drills when work is at rest.

The tables' own constraints keep single rows right; what only several rows together can show is looked up here. A fault
found is a fault of the platform, never of a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("books")


@dataclass(frozen=True, slots=True)
class BookFault:
    """Rows that contradict each other: the kind, the run, and what was found."""

    what: str
    run_id: UUID
    found: str | None


@dataclass(frozen=True, slots=True)
class BookTotals:
    """How many rows a tenant has."""

    runs: int
    steps: int
    attempts: int
    attempts_lost: int
    attempts_failed: int
    attempts_late: int
    messages: int
    events: int
    reviews_pending: int


async def faults(conn: Connection, tenant: str, runs: Sequence[UUID], tools: Sequence[str]) -> list[BookFault]:
    """At most 200 faults in the rows of `runs`, which are all runs that there should be.

    Each run is at rest (it awaits a review or has ended) and has asked each of `tools`.
    """
    given = {"tenant": tenant, "runs": list(runs), "tools": list(tools)}
    return await queries.many(conn, _SQL["faults"], given, BookFault)


async def totals(conn: Connection, tenant: str) -> BookTotals:
    """The counts of a tenant's rows."""
    found = await queries.one(conn, _SQL["totals"], {"tenant": tenant}, BookTotals)
    assert found is not None
    return found
