"""What a sweep finds: by counting where both sides agree, by the engine's list where they may not.

It moves like this. The engine counts its open runs and the database its open rows. Where the counts agree and neither
side has anything to tell, a few rows are looked at and no list is read, since a list of ten thousand is seconds of work
for the engine. Else, and every ten minutes in any case, the list is read once, then the open rows page by page; each
row is sorted by what the list says of it. What is left of the list then has no open row.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from temporalio.service import RPCError

from casework.durable.activities.engine_side import EngineRun, EngineSide
from casework.durable.activities.sorting import Ages, Findings
from casework.errors import RetryableError
from casework.store import sweeping
from casework.store.database import Database
from casework.store.sweeping import OpenRow

UNSERVED = (
    "it waits in task queue {queue!r}, which no worker takes. Start a worker with CASEWORK_TASK_QUEUE={queue}; "
    "nothing is lost."
)


class Finder:
    """Finds the cases of one sweep after the other; remembers when the engine's list was last read."""

    def __init__(self, db: Database, engine: EngineSide, queue: str, ages: Ages) -> None:
        self._db = db
        self._engine = engine
        self._queue = queue
        self._ages = ages
        self._rest_until = 0.0
        self._agreed_until = 0.0

    async def find(self) -> Findings:
        """The cases of one sweep.

        Raises:
            StoreUnavailableError: the database cannot be reached.
            RetryableError: the engine cannot be reached.
        """
        try:
            return await self._agreeing() or await self._listed()
        except RPCError as error:
            raise RetryableError(f"Temporal tells no open runs ({error.status.name}). Tried again.") from error

    async def _agreeing(self) -> Findings | None:
        """Rows left PENDING and a few others, where both sides count the same; None where the list is to be read."""
        if time.monotonic() >= self._agreed_until:
            return None
        there = await self._engine.counted()
        async with self._db.transaction() as conn:
            here = await sweeping.counted(conn, self._queue)
            if there.troubled or here.told or here.open != there.open:
                return None
            now = datetime.now(UTC)
            rows = await sweeping.few(conn, now - self._ages.still, self._ages.questions)
        findings = Findings(now, self._ages, self._queue, {})
        for row in rows:
            findings.sort_agreeing(row)
        findings.seen = here.open + here.pending
        return findings

    async def _listed(self) -> Findings:
        """The engine's list first, so that a run that starts or ends meanwhile is at worst looked at for nothing."""
        open_in_engine = await self._open_in_engine()
        findings = Findings(datetime.now(UTC), self._ages, self._queue, open_in_engine)
        after: OpenRow | None = None
        while True:
            async with self._db.transaction() as conn:
                page = await sweeping.open_page(conn, after)
            for row in page:
                findings.sort(row)
            if len(page) < sweeping.PAGE:
                break
            after = page[-1]
        async with self._db.transaction() as conn:
            findings.sort_leftovers(await sweeping.known(conn, findings.leftovers()))
        for queue in list(findings.elsewhere):
            await self._nobody_there(queue, findings)
        return findings

    async def _open_in_engine(self) -> dict[str, EngineRun] | None:
        """The list, unless the last one was so long that it is too early for another."""
        began = time.monotonic()
        if began < self._rest_until:
            return None
        found = await self._engine.open_runs()
        ended = time.monotonic()
        self._rest_until = ended + self._ages.rest * (ended - began)
        self._agreed_until = ended + self._ages.agreed.total_seconds()
        return found

    async def _nobody_there(self, queue: str, findings: Findings) -> None:
        """Runs of another task queue are fine while it has workers."""
        try:
            served = await self._engine.has_workers(queue)
        except RPCError:
            return
        rows = findings.elsewhere.pop(queue)
        if served:
            findings.released += [row for row in rows if row.incident is not None and row.incident["kind"] == "engine"]
        else:
            why = UNSERVED.format(queue=queue)
            findings.held += [(row, why) for row in rows]
