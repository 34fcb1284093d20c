"""Claims whose tray may be gone: those whose Transactions have not moved for a while, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("orphans")
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim that open Transactions bear; `moved_at` is when one of them was last written."""

    tenant: str
    claim_id: UUID
    process: str
    transactions: int
    moved_at: datetime


async def claimed_since(
    conn: Connection, before: datetime, most: int, after: HeldClaim | None = None
) -> list[HeldClaim]:
    """The next `most` claims of all tenants, behind `after`, none of whose Transactions has moved since `before`."""
    known = ("", _FIRST) if after is None else (after.tenant, after.claim_id)
    params = {"before": before, "most": most, "tenant": known[0], "claim_id": known[1]}
    return await queries.many(conn, _SQL["claimed_since"], params, HeldClaim)
