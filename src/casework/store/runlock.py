"""The run's row lock: who holds it gives the next `seq`, and no other write of that run overtakes.

FOR NO KEY UPDATE and not FOR UPDATE: it excludes itself just as well, but lets foreign-key checks of other rows of the
run pass, so that a transactional tool may hold it while another connection pins the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from casework.errors import ConflictError
from casework.store import queries
from casework.store.database import Connection

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
_SQL = queries.load("runs")


@dataclass(frozen=True, slots=True)
class RunState:
    """What the lock shows of the run."""

    status: str
    version: int

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL


async def lock_run(conn: Connection, tenant: str, run_id: UUID) -> RunState:
    """Take the row lock of a run, to the end of the transaction.

    Raises:
        ConflictError: there is no such run.
    """
    found = await queries.one(conn, _SQL["lock"], {"tenant": tenant, "run_id": run_id}, RunState)
    if found is None:
        raise ConflictError(
            f"Run {run_id} of tenant {tenant!r} has no row. Start it through the API, which writes it first."
        )
    return found
