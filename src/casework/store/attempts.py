"""The rows of single attempts: how one ends, and how those end that never reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal
from uuid import UUID

from casework import ids
from casework.store import queries
from casework.store.database import Connection
from casework.store.events import add_locked
from casework.store.rollups import Change, roll_up
from casework.values import Plain

_SQL = queries.load("ledger")
EVERY = 2**31 - 1
"""Above any attempt number."""
_LIMIT = Decimal("1e15")
_MOST_TOKENS = 10**9
"""Of one attempt, in or out: far more than any model reads, and few enough that no sum of them leaves its column."""
_MOST_MS = 10**11
_ZERO = Decimal(0)

End = Literal["COMPLETED", "FAILED", "LATE"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What an attempt took. `result` only where the step's row does not hold it (LATE)."""

    error: str | None
    latency_ms: int
    tokens_in: int
    tokens_out: int
    cost: Decimal
    result: Plain = None

    def held(self) -> dict[str, int | Decimal]:
        """The numbers as columns hold them: what is negative, not finite or absurdly large becomes 0 or the limit."""
        cost = self.cost if Decimal(self.cost).is_finite() else _ZERO
        return {
            "latency_ms": min(max(self.latency_ms, 0), _MOST_MS),
            "tokens_in": min(max(self.tokens_in, 0), _MOST_TOKENS),
            "tokens_out": min(max(self.tokens_out, 0), _MOST_TOKENS),
            "cost": min(max(Decimal(cost), _ZERO), _LIMIT),
        }

    def replaced(self) -> int:
        """How many of the numbers `held` changed, for the row's count."""
        return sum(getattr(self, name) != value for name, value in self.held().items())


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Which attempt, and the turn it counts for."""

    tenant: str
    run_id: UUID
    path: str
    attempt: int
    turn: int


@dataclass(frozen=True, slots=True)
class _Before:
    outcome: str | None
    latency_ms: int
    tokens_in: int
    tokens_out: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class _Lost:
    attempt: int
    turn: int
    name: str


async def end_attempt(
    conn: Connection, at: AttemptKey, end: End, figures: Figures, calls: Change | None = None
) -> None:
    """Write an attempt's end and add it to the roll-ups, with `calls` where it ends its step.

    An attempt that was counted before is corrected, not counted twice.
    """
    held = figures.held()
    key = {"tenant": at.tenant, "step_id": ids.step_id(at.run_id, at.path), "attempt": at.attempt}
    params = queries.Writing(**key, outcome=end, error=figures.error, **held).json(result=figures.result)
    params["cleaned"] += figures.replaced()
    before = await queries.one(conn, _SQL["end_attempt"], params, _Before)
    assert before is not None  # every claim opened its attempt
    await roll_up(conn, at.tenant, at.run_id, at.turn, _difference(before, end, held, calls or Change()))


def _difference(before: _Before, end: str, now: dict[str, int | Decimal], calls: Change) -> Change:
    counts = {f"attempts_{outcome.lower()}": 0 for outcome in ("COMPLETED", "FAILED", "LOST", "LATE")}
    counts[f"attempts_{end.lower()}"] += 1
    if before.outcome is not None:
        counts[f"attempts_{before.outcome.lower()}"] -= 1
    return replace(
        calls,
        **counts,
        latency_ms=int(now["latency_ms"]) - before.latency_ms,
        tokens_in=int(now["tokens_in"]) - before.tokens_in,
        tokens_out=int(now["tokens_out"]) - before.tokens_out,
        cost=Decimal(now["cost"]) - before.cost,
    )


async def lose_attempts(conn: Connection, tenant: str, run_id: UUID, path: str, below: int, why: str) -> None:
    """Close the step's attempts under `below` that reported nothing as LOST, each with an event `attempt_lost:<n>`."""
    params = queries.Writing(tenant=tenant, step_id=ids.step_id(run_id, path), below=below, error=why)
    for lost in await queries.many(conn, _SQL["lose_attempts"], params, _Lost):
        data = {"name": lost.name, "attempt": lost.attempt, "reason": why}
        await add_locked(conn, tenant, run_id, path, f"attempt_lost:{lost.attempt}", data)
        await roll_up(conn, tenant, run_id, lost.turn, Change(attempts_lost=1))
