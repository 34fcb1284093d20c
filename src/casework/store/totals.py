"""Figures of the whole installation for whoever watches it: every tenant, since the first run, in one snapshot.

Counters are sums of what ended (roll-up rows) and what is open (partial indexes). A run moves from one to the other in
the transaction that ends it, and both are read in one snapshot, so a sum never goes back. Deleting old runs changes
no roll-up row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("totals")


@dataclass(frozen=True, slots=True)
class Used:
    """What runs of one workflow in one state used and asked. Sums of tokens are whole numbers without a bound."""

    tenant: str
    workflow_name: str
    status: str
    runs: int
    reviews_asked: int
    reviews_decided: int
    reviews_closed: int
    review_seconds: Decimal
    model_calls: int
    tool_calls: int
    tokens_in: int | Decimal
    tokens_out: int | Decimal
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Ended(Used):
    """Runs that ended so. `outcome` is empty where no decision ended them; `run_seconds` from acceptance to the end."""

    outcome: str
    run_seconds: Decimal


@dataclass(frozen=True, slots=True)
class Live(Used):
    """Runs that are in a state now. `oldest_seconds`: since the oldest of them was accepted."""

    incidents: int
    oldest_seconds: Decimal


@dataclass(frozen=True, slots=True)
class Waiting:
    """Reviews that wait for a person, and for how long the oldest has."""

    tenant: str
    workflow_name: str
    reviews: int
    oldest_seconds: Decimal


@dataclass(frozen=True, slots=True)
class Operation:
    """Ended attempts of one tool or model, by outcome; `latency_ms` is their sum.

    One that was lost, and came late after all, counts as both.
    """

    tenant: str
    kind: str
    name: str
    completed: int
    failed: int
    lost: int
    late: int
    latency_ms: int | Decimal


@dataclass(frozen=True, slots=True)
class InFlight:
    """Steps under way now. `retrying` of them had an attempt that did not end well."""

    tenant: str
    kind: str
    name: str
    steps: int
    retrying: int


@dataclass(frozen=True, slots=True)
class Totals:
    """All of it, of one moment."""

    ended: Sequence[Ended]
    live: Sequence[Live]
    waiting: Sequence[Waiting]
    operations: Sequence[Operation]
    in_flight: Sequence[InFlight]


async def read(conn: Connection, timeout_s: float = 5) -> Totals:
    """All figures in one snapshot; `conn` is in a transaction of its own that has done nothing yet.

    Raises:
        StoreUnavailableError: (through `Database.transaction`) also where one statement takes longer than `timeout_s`.
    """
    await queries.run(conn, _SQL["one_snapshot"], {})
    await queries.run(conn, _SQL["bounded"], {"timeout": f"{int(timeout_s * 1000)}ms"})
    return Totals(
        await queries.many(conn, _SQL["ended"], {}, Ended),
        await queries.many(conn, _SQL["live"], {}, Live),
        await queries.many(conn, _SQL["waiting"], {}, Waiting),
        await queries.many(conn, _SQL["operations"], {}, Operation),
        await queries.many(conn, _SQL["in_flight"], {}, InFlight),
    )
