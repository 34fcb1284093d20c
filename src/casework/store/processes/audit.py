"""Whether the books of business processes balance: Transactions against stages, claims, steps, errors, analytics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.values import Plain

_SQL = queries.load("process_audit")
MOST = 1000
"""So many faults are told of; there may be more."""


@dataclass(frozen=True, slots=True)
class BookFault:
    """What does not agree: `id` is that of a Transaction, or of a claim where the fault is the claim's."""

    fault: str
    id: UUID
    found: str


@dataclass(frozen=True, slots=True)
class BookCounts:
    """How many rows there are; `failed` are HAS_ERROR or ERROR_IN_PROGRESS."""

    transactions: int
    open: int
    in_trays: int
    completed: int
    failed: int
    steps: int


@dataclass(frozen=True, slots=True)
class Books:
    """The books of one tenant."""

    counts: BookCounts
    faults: list[BookFault]

    def to_plain(self) -> dict[str, Plain]:
        """For one JSON object."""
        faults: list[Plain] = [{"fault": each.fault, "id": str(each.id), "found": each.found} for each in self.faults]
        return {"balanced": not self.faults, "counts": asdict(self.counts), "faults": faults}


async def books(conn: Connection, tenant: str) -> Books:
    """The counts, and up to `MOST` faults in order of their kind. The faults are read in one snapshot."""
    params = {"tenant": tenant, "most": MOST}
    counts = await queries.one(conn, _SQL["counted"], params, BookCounts)
    assert counts is not None, "a count without group by is one row"
    return Books(counts, await queries.many(conn, _SQL["faults"], params, BookFault))
