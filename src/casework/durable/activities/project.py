"""The activity that carries the outbox and nothing else."""

from __future__ import annotations

from temporalio import activity

from casework.durable import contracts
from casework.durable.activities.operation import operation
from casework.durable.activities.services import Services, recorded, run_id
from casework.durable.contracts import Project
from casework.store import projection


class ProjectActivity:
    """`casework.project`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=contracts.PROJECT)
    @operation
    async def project(self, request: Project) -> None:
        """Apply outbox entries in one database transaction; doing it again changes nothing.

        Raises:
            ConflictError: an entry meets a row that it may not touch; recorded as an event.
            StoreUnavailableError: the database cannot be reached.
        """
        async with recorded(self._services.db, request.owner, ""), self._services.db.transaction() as conn:
            await projection.apply(conn, request.owner.tenant, run_id(request.owner), request.outbox)
