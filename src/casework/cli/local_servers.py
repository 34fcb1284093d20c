"""PostgreSQL and Temporal of the local stack: each started here unless the settings name one outside."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from casework.children.family import kill_family
from casework.cli import stack
from casework.errors import LocalStackError
from casework.settings import Secret, Settings, TemporalSettings

if TYPE_CHECKING:
    from temporalio.client import Client

    from casework.durable.local import LocalTemporal
    from casework.store.local import LocalPostgres


class LocalServers:
    """The servers that one stack runs; where the settings name both outside, none."""

    def __init__(self, home: Path, settings: Settings) -> None:
        from casework.durable.local import LocalTemporal
        from casework.store.local import LocalPostgres

        outside = settings.temporal.address or settings.temporal.profile
        self._postgres: LocalPostgres | None = None if settings.database.url else LocalPostgres(home / "postgres")
        self._temporal: LocalTemporal | None = None if outside else LocalTemporal(home / "temporal")
        self._blobs = stack.blobs_of(home)
        self._client: Client | None = None

    async def start(self, settings: Settings) -> Settings:
        """Start what is ours, side by side; returns the settings with the addresses of it.

        Raises:
            LocalStackError: a server does not come up.
            UnreachableError: Temporal outside does not answer.
        """
        from casework.durable.connection import connect

        coming = asyncio.create_task(self._temporal.start()) if self._temporal else None
        await asyncio.sleep(0)  # Temporal's process is started before PostgreSQL is waited for
        try:
            if self._postgres:
                url = Secret(self._postgres.start())
                database = replace(settings.database, url=url, admin_url=url, policy_url=url)
                settings = replace(settings, database=database)
        finally:
            address = await coming if coming else None
        if address:
            # Of the local server nothing but the address: keys and certificates are for servers outside.
            temporal = TemporalSettings(address=address, task_queue=settings.temporal.task_queue)
            blobs = settings.histories.blobs or str(self._blobs)
            settings = replace(settings, temporal=temporal, histories=replace(settings.histories, blobs=blobs))
        self._client = await connect(settings)
        return settings

    def stop(self) -> None:
        """Stop what is ours, Temporal first: it has no use for the database, the services before it had for both."""
        self._client = None
        for server in (self._temporal, self._postgres):
            if server:
                server.stop()

    async def restart_crashed(self) -> list[str]:
        """Start again what has died; a sentence for each.

        Raises:
            LocalStackError: it does not come up, or its port is gone, which no service would learn of.
        """
        told = []
        if self._postgres and not self._postgres.pid:
            before = self._postgres.dsn
            self._postgres.start()
            told.append(_same("PostgreSQL", before, self._postgres.dsn))
        if self._temporal and not self._temporal.pid:
            before = self._temporal.address
            await self._temporal.start()
            told.append(_same("Temporal", before, self._temporal.address))
        return told

    async def is_polling(self, settings: Settings, pid: int | None) -> bool:
        """Whether the worker with this process id takes work from the task queue; no while Temporal does not answer."""
        from temporalio.api.enums.v1 import TaskQueueType
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
        from temporalio.service import RPCError

        if self._client is None or pid is None:
            return False
        asked = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=settings.temporal.task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        try:
            answer = await self._client.workflow_service.describe_task_queue(asked)
        except RPCError:
            return False
        return any(poller.identity.startswith(f"{pid}@") for poller in answer.pollers)

    def kill(self, name: str) -> int:
        """SIGKILL one of our own servers with all of its processes, as if it had crashed; its process id.

        Raises:
            LocalStackError: no server of that name is ours and lives.
        """
        pid = self.pids().get(name)
        if not pid:
            raise LocalStackError(f"No {name} of this stack is alive, so it cannot be killed. Start the stack first.")
        kill_family(pid)
        return pid

    def facts(self) -> dict[str, str]:
        """Where our own servers are, without secrets. Servers outside are named by the environment alone."""
        found = {}
        if self._postgres:
            names = ("database_url", "admin_database_url", "policy_database_url")
            found.update(dict.fromkeys(names, self._postgres.dsn))
        if self._temporal:
            found["temporal_address"] = self._temporal.address
        return found

    def pids(self) -> dict[str, int | None]:
        """The process ids of our own servers."""
        servers = {"postgres": self._postgres, "temporal": self._temporal}
        return {name: server.pid for name, server in servers.items() if server}


def _same(name: str, before: str, after: str) -> str:
    if before != after:
        raise LocalStackError(
            f"{name} ended, and its port was taken by another program meanwhile. Stop the stack and start it again."
        )
    return f"{name} ended and was started again."
