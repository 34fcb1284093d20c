"""One run with all that is its own but transcript, events and logs, which have pages; of its steps the newest."""

from __future__ import annotations

from uuid import UUID

from casework.api import doing, render
from casework.api.services import Services
from casework.errors import NotFoundError
from casework.store import forks, metrics, reviews, runs, steps, waits
from casework.store.database import Connection
from casework.store.rows import RunRow
from casework.store.runs import RunDetail
from casework.values import Plain

SHOWN_STEPS = 200
"""Most steps in one answer; a run of 500 exchanges has a thousand."""


async def of(services: Services, tenant: str, run_id: UUID) -> dict[str, Plain]:
    """`shapes.RunDetail`.

    Raises:
        NotFoundError: there is no such run.
    """
    async with services.db.transaction() as conn:
        row = await found(conn, tenant, run_id)
        newest, earlier = await steps.latest_of_run(conn, tenant, run_id, SHOWN_STEPS)
        known = RunDetail(
            row,
            await runs.context(conn, tenant, run_id),
            newest,
            await steps.attempts_of(conn, tenant, [step.step_id for step in newest]),
            await reviews.of_run(conn, tenant, run_id),
            await reviews.decisions(conn, tenant, run_id),
            await metrics.of_run(conn, tenant, run_id),
            await metrics.of_turns(conn, tenant, run_id),
        )
        results = await steps.evidence(conn, tenant, run_id)
        waiting = await waits.of_run(conn, tenant, run_id)
        below = await waits.subs(conn, tenant, run_id)
        made_of_it = await forks.of_run(conn, tenant, run_id)
    review = known.reviews[-1] if known.reviews else None
    now = await doing.look(services, doing.Rows(row, newest, known.attempts, review, waiting, below))
    return render.detail(known, results, now, earlier=earlier, forks=made_of_it)


async def found(conn: Connection, tenant: str, run_id: UUID) -> RunRow:
    """The run's row.

    Raises:
        NotFoundError: there is none.
    """
    row = await runs.get(conn, tenant, run_id)
    if row is None:
        raise NotFoundError(f"There is no run {run_id}. The list of runs has those there are.")
    return row
