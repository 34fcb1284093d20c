"""Sweeps for tests: through the engine as the schedule does it, or at once with other ages; and a restored database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from casework.durable import contracts
from casework.durable.activities.sorting import Ages
from casework.durable.activities.sweep import SweepActivity
from casework.durable.client import RunClient
from casework.durable.contracts import SweepReport
from casework.durable.converter import DATA_CONVERTER
from casework.durable.local.binaries import find_program
from casework.store.database import Database
from casework.store.local.binaries import binaries
from tests.integration.durable.conftest import House, eventually

LONG_AGO = timedelta(minutes=10)
NO_AGE = timedelta(0)
AT_ONCE = Ages(pending=NO_AGE, quiet=NO_AGE, still=NO_AGE, step=NO_AGE, stuck=NO_AGE)


async def sweep(house: House) -> SweepReport:
    """One sweep as the schedule starts it."""
    report: SweepReport = await house.client.execute_workflow(
        contracts.SWEEP_WORKFLOW,
        id=f"sweep-{uuid4()}",
        task_queue=house.settings.temporal.task_queue,
        result_type=SweepReport,
    )
    return report


async def sweep_now(house: House, ages: Ages = AT_ONCE, run_client: RunClient | None = None) -> SweepReport:
    """One sweep in this process, which finds nothing too young."""
    activity = SweepActivity(house.services(), house.client, run_client or house.runs, ages)
    report: SweepReport = await ActivityEnvironment().run(activity.sweep_runs)
    return report


async def own_namespace(house: House) -> Client:
    """A client of a namespace that nobody else uses, on the house's Temporal."""
    return await new_namespace(str(house.settings.temporal.address), "own")


async def new_namespace(address: str, prefix: str) -> Client:
    """A client of a new namespace on the server at `address`, once it is served."""
    name = f"{prefix}-{uuid4().hex[:8]}"
    client = await Client.connect(address, namespace=name, data_converter=DATA_CONVERTER)
    asked = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=Duration(seconds=86400))
    await client.workflow_service.register_namespace(asked)

    async def served() -> bool:
        try:
            await client.count_workflows("WorkflowType = 'none'")
        except RPCError:
            return False
        return True

    await eventually(served, "the namespace is there")
    return client


async def temporal(house: House, *words: str) -> None:
    """What an operator types: `temporal ...`."""
    program = find_program()
    assert program is not None
    address = house.settings.temporal.address
    process = await asyncio.create_subprocess_exec(program, *words, "--address", str(address))
    assert await process.wait() == 0


class Backup:
    """A dump of a house's database, made by the server's own tool."""

    def __init__(self, house: House, content: bytes) -> None:
        self._house = house
        self._content = content

    @classmethod
    async def of(cls, house: House) -> Backup:
        return cls(house, await _tool("pg_dump", "--format=custom", f"--dbname={house.dsn}"))

    @asynccontextmanager
    async def restored(self) -> AsyncIterator[House]:
        """The same house on the database as it was then."""
        parts = urlsplit(self._house.dsn)
        name = f"restored_{uuid4().hex}"
        dsn = urlunsplit(parts._replace(path=f"/{name}"))
        with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as admin:
            admin.execute(f"create database {name}".encode())
            try:
                await _tool("pg_restore", f"--dbname={dsn}", given=self._content)
                async with await Database.open(dsn) as db:
                    yield replace(self._house, dsn=dsn, db=db)
            finally:
                admin.execute(f"drop database {name} with (force)".encode())


async def _tool(name: str, *words: str, given: bytes | None = None) -> bytes:
    process = await asyncio.create_subprocess_exec(
        binaries() / name, *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    made, _ = await process.communicate(given)
    assert process.returncode == 0, name
    return made
