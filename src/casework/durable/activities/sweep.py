"""The sweep: rows and Temporal workflows that do not agree are found, told, and mended where that is safe.

It moves like this. The finder compares the open rows with the engine's open runs and sorts them; only what does not
agree is looked at singly. Every part has its time, and takes its cases in random order: what cannot be settled holds up
nobody, and is met again by the next sweep. Sweeps may run side by side: each write is guarded.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from casework.durable import contracts
from casework.durable.activities.engine_side import GONE, EngineRun, EngineSide
from casework.durable.activities.finder import UNSERVED, Finder
from casework.durable.activities.operation import operation
from casework.durable.activities.orphans import OrphanSweep
from casework.durable.activities.services import Services
from casework.durable.activities.sorting import Ages, Findings
from casework.durable.activities.telling import Told
from casework.durable.client import RunClient
from casework.durable.contracts import CancelRequest, RunStart, Standing, SweepReport
from casework.durable.engines import REMEDY, own_engine
from casework.durable.starting import packed, start_with_seed
from casework.errors import (
    CaseworkError,
    FatalError,
    InputError,
    RetryableError,
    StateError,
    StoreUnavailableError,
    UnreachableError,
)
from casework.store import forks, incidents, projection, runs, sweeping, workflows
from casework.store.engines import EngineRow
from casework.store.incidents import Kind
from casework.store.processes import linked_runs
from casework.store.sweeping import OpenRow
from casework.trees.bundle import Pinned, pinned_from_plain

log = logging.getLogger("casework.sweep")

BEHIND = (
    "its row is older than the run itself (row version {row}, run version {run}): was the database set back to an "
    "earlier time? The run has been asked to write its rows again. If this stays, cancel it and start another."
)
STUCK = "it could not be started yet, and every sweep tries again: {words}"
MANY_GONE = (
    "its Temporal workflow no longer exists, and that holds for most open runs at once, so nothing is closed. Is the "
    "engine's data whole? If they are gone for good, run `casework engine accept`; they are then closed FAILED."
)
AHEAD = (
    "its row is newer than the run itself (row version {row}, run version {run}): was the engine set back to an "
    "earlier time, or the run reset? What people decided since is not known to it. Cancel it and start another."
)


class SweepActivity:
    """`casework.sweep_runs`."""

    def __init__(self, services: Services, client: Client, run_client: RunClient, ages: Ages | None = None) -> None:
        self._services = services
        self._client = client
        self._engine = EngineSide(client)
        self._runs = run_client
        self._ages = ages or Ages()
        self._finder = Finder(services.db, self._engine, run_client.task_queue, self._ages)
        self._orphans = OrphanSweep(services, client)

    @activity.defn(name=contracts.SWEEP)
    @operation
    async def sweep_runs(self) -> SweepReport:
        """One sweep over all tenants.

        Raises:
            StoreUnavailableError: the database cannot be reached.
            RetryableError: the engine cannot be reached.
        """
        kept, wrong = await self._own_engine()
        if wrong is not None:
            log.error("this sweep did nothing. %s %s", wrong, REMEDY)
            return SweepReport(whole=False, refused=wrong)
        findings = await self._finder.find()
        told = Told(log)
        await findings.each(findings.pending, lambda row: self._start(row, findings, told))
        for queue, rows in findings.pending_elsewhere.items():
            await self._foreign_pending(queue, rows, told)
        await findings.each(findings.missing, lambda row: self._settle(row, findings, told))
        await self._close_gone(kept, findings, told)
        await findings.each(findings.held, lambda held: self._hold(*held, told))
        await findings.each(findings.released, self._release)
        await findings.each(findings.without_row, lambda run: self._restore(run, told))
        await findings.each(findings.ended, lambda row: self._stop(row, told))
        await findings.each(await self._doubtful(findings), lambda row: self._compare(row, findings, told))
        if findings.disagree:
            await findings.each(findings.further(), lambda row: self._compare(row, findings, told))
        told.say()
        orphans = await self._orphans.sweep(kept.accepted_at)
        return replace(told.report(findings), orphans=orphans)

    async def _own_engine(self) -> tuple[EngineRow, str | None]:
        """What is not in another engine than the database's own is not gone."""
        try:
            return await own_engine(self._services.db, self._client)
        except UnreachableError as error:
            raise RetryableError(str(error)) from error

    async def _foreign_pending(self, queue: str, rows: list[OpenRow], told: Told) -> None:
        """Rows of another queue are started by that queue's sweep, which needs a worker there."""
        try:
            if await self._engine.has_workers(queue):
                return
        except RPCError:
            return
        told.stuck += len(rows)
        for row in rows:
            if row.incident is None:
                await self._flag(row, "start", UNSERVED.format(queue=queue), told)

    async def _start(self, row: OpenRow, findings: Findings, told: Told) -> None:
        """Start a row that was left PENDING. One whose run has ended already is settled like any other."""
        async with self._services.db.transaction() as conn:
            full = await runs.get(conn, row.tenant, row.run_id)
            transaction = await linked_runs.transaction_of(conn, row.tenant, row.run_id)
        if full is None or full.status != "PENDING":
            return
        if full.parent_run_id is not None:  # its parent has ended, or it would not be among the cases
            await self._close(row, f"run {full.parent_run_id}, which was to start it, ended first", told)
            return
        if transaction is not None:  # as above
            await self._close(row, f"the tray of Transaction {transaction}, which was to start it, let go of it", told)
            return
        try:
            bundle = await self._services.bundle(full.tenant, full.workflow_name, full.workflow_version)
            async with self._services.db.transaction() as conn:
                start = await start_with_seed(conn, full, bundle.to_plain())
            if await self._runs.start(start, full.task_queue):
                told.started += 1
            else:
                findings.missing.append(row)
        except StoreUnavailableError:
            raise
        except (FatalError, InputError) as error:
            await self._close(row, f"it cannot be started: {error}", told)
        except Exception as error:  # noqa: BLE001  # one row that nobody foresaw does not hold up the others
            told.stuck += 1
            log.warning("run %s could not be started: %s", row.run_id, error)
            if findings.now - row.created_at > self._ages.stuck:
                words = error if isinstance(error, CaseworkError) else f"{type(error).__name__}: {error}"
                await self._flag(row, "start", STUCK.format(words=words), told)

    async def _settle(self, row: OpenRow, findings: Findings, told: Told) -> None:
        """The list is a little late, so the engine is asked about this run itself before its row is closed."""
        try:
            reason = await self._engine.ending(str(row.run_id))
        except RPCError as error:
            told.left += 1
            log.warning("the engine says nothing about run %s (%s)", row.run_id, error.status.name)
            return
        findings.asked += 1
        if reason == GONE:
            findings.gone.append(row)
        elif reason is not None:
            await self._close(row, reason, told)

    async def _close_gone(self, kept: EngineRow, findings: Findings, told: Told) -> None:
        """A closed row is closed for ever, so where most are gone at once a person says whether that is so."""
        since = kept.accepted_at
        agreed = [row for row in findings.gone if since is not None and row.created_at < since]
        if findings.many_gone() and len(agreed) < len(findings.gone):
            held = [row for row in findings.gone if since is None or row.created_at >= since]
            log.error(
                "%d open runs at least are gone in the engine at once. Nothing is closed: %s", len(held), MANY_GONE
            )
            await findings.each(held, lambda row: self._hold(row, MANY_GONE, told))
            findings.gone = agreed
        await findings.each(findings.gone, lambda row: self._close(row, GONE, told))

    async def _close(self, row: OpenRow, reason: str, told: Told) -> None:
        async with self._services.db.transaction() as conn:
            written = await runs.close_from_outside(conn, row.tenant, row.run_id, reason)
        if written.rows:
            told.failed.append(f"{row.run_id} ({reason})")

    async def _hold(self, row: OpenRow, reason: str, told: Told) -> None:
        told.incidents += 1
        if row.incident is None or row.incident.get("kind") != "engine":
            await self._flag(row, "engine", reason, told)

    async def _flag(self, row: OpenRow, kind: Kind, reason: str, told: Told) -> None:
        async with self._services.db.transaction() as conn:
            written = await incidents.raise_incident(conn, row.tenant, row.run_id, kind, reason)
        if written.rows:
            told.flagged.append(f"{row.run_id} ({reason})")

    async def _release(self, row: OpenRow) -> None:
        async with self._services.db.transaction() as conn:
            await incidents.clear_incident(conn, row.tenant, row.run_id)

    async def _restore(self, found: EngineRun, told: Told) -> None:
        """A run without a row: nobody can see or answer it. Its input holds what the row is made of."""
        start = await self._input_of(found)
        if start is None or not await self._make_row(found, start):
            told.unknown.append(found.run_id)
            return
        told.restored.append(found.run_id)
        await self._ask_again(found.run_id)

    async def _input_of(self, found: EngineRun) -> RunStart | None:
        try:
            start = await self._engine.started_with(found.run_id)
        except RPCError:
            return None
        return start if start is not None and start.run_id == found.run_id else None

    async def _make_row(self, found: EngineRun, start: RunStart) -> bool:
        """Only where the very workflow it is pinned to has its version here; another one would mislead every reader."""
        try:
            pinned = pinned_from_plain(start.bundle)
            async with self._services.db.transaction() as conn:
                stored = await workflows.get(conn, start.tenant, pinned.name, start.workflow_version)
                if stored is None or pinned_from_plain(stored).hash() != pinned.hash():
                    return False
                made = await runs.create_pending(conn, _row_of(found, start, pinned))
                if start.fork is not None and start.carried is not None:
                    seed = packed(start.carried, start.fork)
                    await forks.keep_seed(conn, made[0].tenant, made[0].run_id, seed)
                reason = "its Temporal workflow is open and it had no row"
                await projection.add_event(conn, made[0].tenant, made[0].run_id, "", "run_restored", {"reason": reason})
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001  # an input that somebody made by hand can be anything
            log.warning("run %s has no row and none can be made: %s", found.run_id, error)
            return False
        return True

    async def _ask_again(self, run_id: str) -> None:
        try:
            await self._runs.tell_again(run_id)
        except CaseworkError as error:  # it has ended, or the next sweep will ask
            log.info("run %s was not asked to write its rows again: %s", run_id, error)

    async def _stop(self, row: sweeping.KnownRow, told: Told) -> None:
        """An ended row never changes, so a run that goes on without it only waits for nobody.

        One whose row was closed because the engine did not have it may be healthy: people are told, and decide.
        """
        if row.failure is not None and row.failure.startswith(GONE):
            told.orphaned.append(str(row.run_id))
            return
        told.stopped.append(str(row.run_id))
        try:
            await self._runs.cancel(str(row.run_id), CancelRequest("the sweep", f"its row is {row.status} already"))
        except CaseworkError as error:
            log.info("run %s was not asked to stop: %s", row.run_id, error)

    async def _doubtful(self, findings: Findings) -> list[OpenRow]:
        """A few rows that have said nothing for long: those first where something should be moving, and is not."""
        since = findings.now - self._ages.step
        async with self._services.db.transaction() as conn:
            busy = await sweeping.busy(conn, [row.run_id for row in findings.still], since)
        return findings.chosen(busy)

    async def _compare(self, row: OpenRow, findings: Findings, told: Told) -> None:
        """The run says where it stands, then the row is read: what the run has sent is there, or it never will be."""
        standing = await self._standing(row, told)
        async with self._services.db.transaction() as conn:
            now = await runs.get(conn, row.tenant, row.run_id)
        if standing is None or now is None or now.ended_at is not None:
            return
        if now.version > standing.version:  # it may have moved on between answer and read, so it is asked once more
            standing = await self._standing(row, told)
            if standing is None:
                return
            if now.version > standing.version:
                findings.disagree = True
                await self._flag(row, "rows", AHEAD.format(row=now.version, run=standing.version), told)
                return
        elif now.version < standing.version:
            findings.disagree = True
            told.behind.append(str(row.run_id))
            await self._flag(row, "rows", BEHIND.format(row=now.version, run=standing.version), told)
            await self._ask_again(str(row.run_id))
            return
        if now.incident is not None and now.incident.get("kind") == "rows":
            await self._release(row)

    async def _standing(self, row: OpenRow, told: Told) -> Standing | None:
        """Where the run stands; None where it cannot say, or has not sent all it knows."""
        try:
            standing = await self._runs.standing(str(row.run_id))
        except StateError:
            return None
        except CaseworkError:
            told.left += 1
            return None
        return None if standing is None or standing.unsent else standing


def _row_of(found: EngineRun, start: RunStart, pinned: Pinned) -> runs.NewRun:
    return runs.NewRun(
        tenant=start.tenant,
        run_id=UUID(start.run_id),
        workflow_name=pinned.name,
        workflow_version=start.workflow_version,
        user=start.user,
        request=start.input,
        request_hash=start.request_hash,
        turn_limit=start.turn_limit,
        model=start.model,
        policy_adoption=pinned.policy_adoption,
        actor=start.actor or None,
        at=found.started if start.carried is None else datetime.fromisoformat(start.carried.since),
        task_queue=found.queue,
        parent_run_id=UUID(start.parent_run_id) if start.parent_run_id else None,
        parent_path=start.parent_path or None,
        forked_from_run_id=UUID(start.fork.run_id) if start.fork else None,
        forked_from_path=start.fork.path if start.fork else None,
    )
