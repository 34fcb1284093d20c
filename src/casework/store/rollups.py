"""The roll-up rows of a run and its turns: each finished attempt is added once, in the transaction that ends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("metrics")


@dataclass(frozen=True, slots=True)
class Change:
    """What to add; a correction is negative."""

    model_calls: int = 0
    tool_calls: int = 0
    attempts_completed: int = 0
    attempts_failed: int = 0
    attempts_lost: int = 0
    attempts_late: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)
    latency_ms: int = 0


async def roll_up(conn: Connection, tenant: str, run_id: UUID, turn: int, change: Change) -> None:
    """Add `change` to the run, its turn, and the totals on the run's row. The caller holds the run's row lock."""
    await queries.run(conn, _SQL["roll_up"], {"tenant": tenant, "run_id": run_id, "turn": turn, **asdict(change)})
