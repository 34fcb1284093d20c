"""Transactions whose tray is gone: found by the sweep, and given to the Error process with that reason.

A tray that waits for a person has not moved for days, and is well. So the claims are looked at page by page, one page
in each sweep, and the engine is asked about each tray by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from casework.durable.activities.services import Services
from casework.durable.client import CALL_TIMEOUT
from casework.durable.trays import tray_id
from casework.errors import FatalError
from casework.process.failures import ErrorType, Severity, Spot, error_entity
from casework.process.identities import step_key
from casework.process.lines import MONITOR
from casework.process.transactions import Transaction, failed
from casework.store.database import Connection
from casework.store.processes import orphans, task_errors, transactions
from casework.store.processes.orphans import HeldClaim
from casework.values import instant

log = logging.getLogger("casework.sweep")
CODE = "ORPHANED"
FORGOTTEN = timedelta(hours=6)
"""After which a tray that is absent still is missed anew: a claim that was let go meanwhile is not remembered."""
MANY_GONE = (
    "%d trays at least do not exist in the engine, most of those that were looked at, so nothing is done about them. "
    "Is the engine's data whole? If they are gone for good, run `casework engine accept`."
)


@dataclass(frozen=True)
class OrphanAges:
    """How long a claim has not moved before its tray is looked at, and how much one sweep does."""

    closed: timedelta = timedelta(minutes=1)
    """A tray that has ended may still be writing."""
    absent: timedelta = timedelta(minutes=10)
    """A poll that is repeated may still start it."""
    missed: timedelta = timedelta(minutes=2)
    """So long it must have been absent to this worker: behind an outage of the engine, its poll comes a while later."""
    page: int = 200
    at_once: int = 8
    many_gone: int = 20
    """More trays than this that do not exist, and more than half of a page, are no accident of single trays."""


@dataclass(frozen=True)
class _Found:
    claim: HeldClaim
    why: str
    absent: bool


class OrphanSweep:
    """Goes through the claims, a page at a time; remembers where it was."""

    def __init__(self, services: Services, client: Client, ages: OrphanAges | None = None) -> None:
        self._services = services
        self._client = client
        self._ages = ages or OrphanAges()
        self._after: HeldClaim | None = None
        self._missed: dict[UUID, datetime] = {}

    async def sweep(self, accepted_at: datetime | None) -> int:
        """Look at the next page; how many Transactions got an error.

        Where most trays are absent at once, those claimed since `accepted_at` are left alone.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """
        now = datetime.now(UTC)
        async with self._services.db.transaction() as conn:
            page = await orphans.claimed_since(conn, now - self._ages.closed, self._ages.page, self._after)
        self._after = page[-1] if len(page) == self._ages.page else None
        found = await self._asked(page, now)
        self._missed = {claim: at for claim, at in self._missed.items() if now - at < FORGOTTEN}
        absent = [each for each in found if each.absent]
        if len(absent) > self._ages.many_gone and 2 * len(absent) > len(page):
            agreed = [each for each in absent if accepted_at is not None and each.claim.moved_at < accepted_at]
            if len(agreed) < len(absent):
                log.error(MANY_GONE, len(absent) - len(agreed))
            found = [*(each for each in found if not each.absent), *agreed]
        marked = [await self._mark(each) for each in found]
        if sum(marked):
            told = "; ".join(f"{tray_id(each.claim.claim_id)} ({each.why})" for each in found[:5])
            log.warning("%d Transactions had no tray any more and got an error: %s", sum(marked), told)
        return sum(marked)

    async def _asked(self, page: list[HeldClaim], now: datetime) -> list[_Found]:
        slots = asyncio.Semaphore(self._ages.at_once)

        async def ask(claim: HeldClaim) -> _Found | None:
            async with slots:
                return await self._tray(claim, now)

        return [each for each in await asyncio.gather(*map(ask, page)) if each is not None]

    async def _tray(self, claim: HeldClaim, now: datetime) -> _Found | None:
        """What is wrong with the tray of a claim; None where it is open, or nobody can tell."""
        try:
            found = await self._client.get_workflow_handle(tray_id(claim.claim_id)).describe(rpc_timeout=CALL_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                log.warning("the engine says nothing about tray %s (%s)", claim.claim_id, error.status.name)
                return None
            if now - claim.moved_at < self._ages.absent or self._newly_missed(claim, now):
                return None
            return _Found(claim, "its tray does not exist in the engine: it was deleted, or never started", True)
        except ValueError:  # a status that the SDK does not know: not closed
            return None
        if found.status in (WorkflowExecutionStatus.RUNNING, None):
            return None
        assert found.status is not None
        at = "" if found.close_time is None else f" at {instant(found.close_time)}"
        return _Found(claim, f"its tray was closed ({found.status.name}{at}) and did not let go of it", False)

    def _newly_missed(self, claim: HeldClaim, now: datetime) -> bool:
        return now - self._missed.setdefault(claim.claim_id, now) < self._ages.missed

    async def _mark(self, found: _Found) -> int:
        claim = found.claim
        async with self._services.db.transaction() as conn:
            held = await transactions.of_claim(conn, claim.tenant, claim.claim_id)
        return sum([await self._marked(claim, each, found.why) for each in held])

    async def _marked(self, claim: HeldClaim, seen: Transaction, why: str) -> bool:
        async with self._services.db.transaction() as conn:
            now = await transactions.lock(conn, claim.tenant, seen.uuid)
            if now is None or now.claim_id != claim.claim_id or now.end_time is not None:
                return False
            return await self._written(conn, now, why)

    async def _written(self, conn: Connection, orphan: Transaction, why: str) -> bool:
        assert orphan.claim_id is not None  # it is found by it
        at, process = datetime.now(UTC), orphan.process or ""
        entity = error_entity(
            FatalError(f"Nobody works on it any more: {why}."),
            orphan,
            Spot(process, orphan.task or MONITOR, step_key(orphan.claim_id, "orphaned", orphan.uuid)),
            root=await transactions.root(conn, orphan),
            attempt=1,
            started=at,
            failed=at,
            environment=os.environ,
        )
        entity = replace(entity, type=ErrorType.APPLICATION, code=CODE, severity=Severity.ERROR)
        await transactions.write(conn, orphan, failed(self._services.app.statuses, orphan), process, "error", at)
        await task_errors.record(conn, orphan.tenant, entity)
        return True
