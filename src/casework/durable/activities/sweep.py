"""The sweep: rows left PENDING are started, open rows whose Temporal workflow is gone are closed and told why."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from casework.durable import contracts
from casework.durable.activities.operation import operation
from casework.durable.activities.services import Services
from casework.durable.client import RunClient
from casework.durable.contracts import SweepReport
from casework.durable.starting import start_of
from casework.errors import CaseworkError, FatalError
from casework.store import runs
from casework.store.paging import Cursor
from casework.store.rows import RunRow

log = logging.getLogger("casework.sweep")

PENDING_AGE = timedelta(seconds=10)
"""A row younger than this is still being started by the API."""
QUIET_AGE = timedelta(seconds=30)
"""A run younger than this is not asked about."""
BATCH = 500


class SweepActivity:
    """`casework.sweep_runs`."""

    def __init__(self, services: Services, client: Client, run_client: RunClient) -> None:
        self._services = services
        self._client = client
        self._runs = run_client

    @activity.defn(name=contracts.SWEEP)
    @operation
    async def sweep_runs(self) -> SweepReport:
        """One sweep over all tenants.

        Raises:
            StoreUnavailableError: the database cannot be reached.
            RetryableError: the engine cannot be reached.
        """
        async with self._services.db.transaction() as conn:
            pending = await runs.pending_older_than(conn, datetime.now(UTC) - PENDING_AGE, limit=BATCH)
        started = 0
        for row in pending:
            started += await self._start(row)
        failed, seen = await self._close_gone()
        return SweepReport(started, failed, len(pending) + seen)

    async def _close_gone(self) -> tuple[int, int]:
        """Open rows are read page by page and compared with what the engine lists as open."""
        before, after = datetime.now(UTC) - QUIET_AGE, None
        open_ids: set[str] | None = None
        failed = seen = 0
        while True:
            async with self._services.db.transaction() as conn:
                page = await runs.open_runs(conn, before=before, after=after, limit=BATCH)
            if page and open_ids is None:
                open_ids = await self._open_in_engine()
            for row in page:
                if str(row.run_id) not in (open_ids or ()):
                    failed += await self._close(row)
            seen += len(page)
            if len(page) < BATCH:
                return failed, seen
            after = Cursor(page[-1].created_at, page[-1].run_id)

    async def _start(self, row: RunRow) -> int:
        """Start a row that was left PENDING; one that cannot be started does not hold up the others."""
        try:
            bundle = await self._services.bundle(row.tenant, row.workflow_name, row.workflow_version)
            await self._runs.start(start_of(row, bundle.to_plain()))
        except FatalError as error:
            async with self._services.db.transaction() as conn:
                await runs.close_from_outside(conn, row.tenant, row.run_id, f"it cannot be started: {error}")
            return 0
        except CaseworkError as error:
            log.warning("run %s could not be started: %s", row.run_id, error)
            return 0
        return 1

    async def _open_in_engine(self) -> set[str]:
        query = f"WorkflowType = '{contracts.RUN_WORKFLOW}' AND ExecutionStatus = 'Running'"
        return {found.id async for found in self._client.list_workflows(query, page_size=1000)}

    async def _close(self, row: RunRow) -> int:
        """The list is a little late, so the engine is asked about this run itself before its row is closed."""
        reason = await self._gone(str(row.run_id))
        if reason is None:
            return 0
        async with self._services.db.transaction() as conn:
            written = await runs.close_from_outside(conn, row.tenant, row.run_id, reason)
        return written.rows

    async def _gone(self, run_id: str) -> str | None:
        try:
            found = await self._client.get_workflow_handle(run_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return "its Temporal workflow no longer exists: deleted from outside, or its history has expired"
            raise
        if found.status in (WorkflowExecutionStatus.RUNNING, None):
            return None
        return f"its Temporal workflow was closed from outside ({found.status.name})"
