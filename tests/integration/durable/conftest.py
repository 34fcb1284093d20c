"""A house of its own for each test: a migrated database, a task queue, and a worker in this process on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import Worker

from casework.app import App
from casework.durable.activities.services import Services
from casework.durable.client import RunClient
from casework.durable.contracts import Decision
from casework.durable.publish import publish
from casework.durable.starting import start_of
from casework.durable.worker import make_worker
from casework.examples.loan_underwriting import app as loan_app
from casework.examples.loan_underwriting.application import POLICY
from casework.models.catalogue import Models
from casework.policy import parse_policy
from casework.settings import Settings, TemporalSettings
from casework.store import policy, reviews, runs, workflows
from casework.store.database import Database
from casework.store.rows import EventRow, ReviewRow, RunRow, StepRow
from casework.testing.databases import Databases, run_now
from casework.values import content_hash

TENANT = "default"
Found = TypeVar("Found")


async def eventually(look: Callable[[], Awaitable[Found | None]], what: str, deadline_s: float = 90) -> Found:
    """What `look` finds, as soon as it finds something; fails when the deadline passes.

    A worker that stops may take a workflow task with it, which the engine learns after ten seconds, each time. What
    takes seconds is looked at more seldom: a look takes the processor from what it waits for.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        found = await look()
        if found:
            return found
        waited = loop.time() - began
        assert waited < deadline_s, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(min(max(0.05, waited / 20), 0.2))


@dataclass
class House:
    """One test's database, application and engine."""

    dsn: str
    db: Database
    client: Client
    settings: Settings
    app: App = field(default_factory=lambda: loan_app)

    @property
    def runs(self) -> RunClient:
        return RunClient(self.client, self.settings.temporal.task_queue, self.settings.histories)

    def services(self) -> Services:
        return Services(self.db, self.app, Models(self.app.scripts), self.settings)

    def worker(self) -> Worker:
        return make_worker(self.client, self.services(), self.settings)

    async def open(self) -> None:
        """What `casework dev` does before the first run: publish the workflows, load the policy."""
        await publish(self.app, self.db)
        await self.load_policy(POLICY.read_text())

    async def load_policy(self, text: str) -> None:
        await load_policy(self.dsn, text)

    async def accept(self, run_input: Mapping[str, Any], workflow: str = "loan-underwriting", **given: Any) -> RunRow:
        """Write the row PENDING, as the API does."""
        async with self.db.transaction() as conn:
            found = await workflows.latest(conn, TENANT, workflow)
            assert found is not None
            new = runs.NewRun(
                tenant=TENANT,
                run_id=given.pop("run_id", uuid4()),
                workflow_name=workflow,
                workflow_version=found[0],
                user="ann",
                request=dict(run_input),
                request_hash=content_hash(run_input),
                **given,
            )
            row, _ = await runs.create_pending(conn, new)
        return row

    async def start(self, run_input: Mapping[str, Any], workflow: str = "loan-underwriting", **given: Any) -> UUID:
        """Accept and start a run; returns its id."""
        row = await self.accept(run_input, workflow, **given)
        async with self.db.transaction() as conn:
            bundle = await workflows.get(conn, TENANT, workflow, row.workflow_version)
        assert bundle is not None
        await self.runs.start(start_of(row, bundle))
        return row.run_id

    async def run(self, run_id: UUID) -> RunRow:
        async with self.db.transaction() as conn:
            row = await runs.get(conn, TENANT, run_id)
        assert row is not None
        return row

    async def reaches(self, run_id: UUID, status: str, *, turn: int | None = None, deadline_s: float = 90) -> RunRow:
        """The run's row once it has `status` (in `turn`)."""

        async def look() -> RunRow | None:
            row = await self.run(run_id)
            return row if row.status == status and turn in (None, row.turn) else None

        try:
            return await eventually(look, f"run {run_id} is {status}", deadline_s)
        except AssertionError as error:
            error.add_note(await self.story(run_id))
            raise

    async def story(self, run_id: UUID) -> str:
        """What a failed test needs to be understood: where the row stands, and what the engine did when."""
        history = await self.client.get_workflow_handle(str(run_id)).fetch_history()
        told = [f"{e.event_time.ToJsonString()} {EventType.Name(e.event_type)}" for e in history.events]
        row = await self.run(run_id)
        return "\n".join([f"row: {row.status}, {row.failure}", *told])

    async def steps(self, run_id: UUID) -> list[StepRow]:
        async with self.db.transaction() as conn:
            return await runs.steps(conn, TENANT, run_id)

    async def events(self, run_id: UUID) -> list[EventRow]:
        found: list[EventRow] = []
        async with self.db.transaction() as conn:
            while page := await runs.events(conn, TENANT, run_id, found[-1].seq if found else 0):
                found += page
        return found

    async def review(self, run_id: UUID) -> ReviewRow:
        async with self.db.transaction() as conn:
            found = await reviews.current(conn, TENANT, run_id)
        assert found is not None
        return found

    async def review_at(self, run_id: UUID, node: str) -> ReviewRow:
        """The current review, once it is the one at `node`."""

        async def look() -> ReviewRow | None:
            async with self.db.transaction() as conn:
                found = await reviews.current(conn, TENANT, run_id)
            return found if found is not None and found.node == node else None

        return await eventually(look, f"run {run_id} asks at {node}")

    async def decide(self, run_id: UUID, command: str, reason: str = "", decision_id: str | None = None) -> ReviewRow:
        """Answer the current review by a signal."""
        review = await self.review(run_id)
        made = Decision(str(review.review_id), decision_id or str(uuid4()), command, reason, "rita")
        await self.runs.decide(str(run_id), made)
        return review

    @asynccontextmanager
    async def with_app(self, app: App) -> AsyncIterator[House]:
        """The same house with another application, published and worked for."""
        other = replace(self, app=app)
        await other.open()
        async with other.worker():
            yield other


async def load_policy(dsn: str, text: str) -> None:
    parsed = parse_policy(text, "csv")
    async with await Database.open(dsn, role="casework_policy_owner") as owner, owner.transaction() as conn:
        await policy.load(conn, parsed.limits)


async def _open_once(dsn: str) -> None:
    async with await Database.open(dsn) as db:
        await publish(loan_app, db)
    await load_policy(dsn, POLICY.read_text())


@pytest.fixture
def loan_dsn(casework_databases: Databases) -> Iterator[str]:
    """The superuser's URL of a database of one test, as `House.open` leaves it with the loan application."""
    with casework_databases.prepared("loan", lambda dsn: run_now(_open_once(dsn))) as dsn:
        yield dsn


@pytest.fixture
async def house(loan_dsn: str, temporal_client: Client, temporal_address: str) -> AsyncIterator[House]:
    """A house with the loan application published and no worker."""
    temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
    async with await Database.open(loan_dsn) as db:
        yield House(loan_dsn, db, temporal_client, Settings(temporal=temporal))


@pytest.fixture
async def working(house: House) -> AsyncIterator[House]:
    """The house with a worker at work."""
    async with house.worker():
        yield house


APPLICATION = {"applicant_id": "APP-1001", "amount": 12000, "purpose": "debt_consolidation"}
"""The borderline applicant."""
