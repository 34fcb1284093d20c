"""Sweeps of many runs that are well: both sides are counted, and the engine's list is read only where they differ."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import Client, Interceptor, ListWorkflowsInput, OutboundInterceptor
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.sweep import SweepActivity
from casework.durable.contracts import SweepReport
from tests.integration.durable.conftest import APPLICATION, House, eventually
from tests.integration.durable.sweeping import AT_ONCE, LONG_AGO, own_namespace, temporal

AGREED = replace(AT_ONCE, agreed=timedelta(hours=1), rest=0.0)


class Lists(Interceptor):
    """Counts how often the engine's list of runs is read."""

    def __init__(self) -> None:
        self.read = 0

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's word
        return _Counting(next, self)


class _Counting(OutboundInterceptor):
    def __init__(self, then: OutboundInterceptor, lists: Lists) -> None:
        super().__init__(then)
        self._lists = lists

    def list_workflows(self, input: ListWorkflowsInput) -> Any:  # noqa: A002 - the SDK's word
        self._lists.read += 1
        return super().list_workflows(input)


class Sweeper:
    """Sweeps of one worker, one after the other."""

    def __init__(self, house: House) -> None:
        self.lists = Lists()
        self.house = house
        config: dict[str, Any] = {**house.client.config(), "interceptors": [self.lists]}
        client = Client(**config)
        self._activity = SweepActivity(house.services(), client, house.runs, AGREED)

    async def sweep(self) -> SweepReport:
        report: SweepReport = await ActivityEnvironment().run(self._activity.sweep_runs)
        return report

    async def agrees(self) -> bool:
        """Whether a sweep read no list: the engine's count follows its runs with a little delay."""
        before = self.lists.read
        await self.sweep()
        return self.lists.read == before


@pytest.fixture
async def alone(house: House) -> AsyncIterator[House]:
    """A house with a worker and a namespace of the engine to itself."""
    made = replace(house, client=await own_namespace(house))
    async with made.worker():
        yield made


async def waiting(house: House) -> UUID:
    """A run that waits for a person, and has for some time."""
    queue = house.settings.temporal.task_queue
    run_id = await house.start(APPLICATION, at=datetime.now(UTC) - LONG_AGO, task_queue=queue)
    await house.reaches(run_id, "AWAITING_REVIEW")
    return run_id


async def test_where_both_sides_count_the_same_no_list_is_read(alone: House) -> None:
    """DA-8. The first sweep reads it; then rows left PENDING are started and a few runs are asked, by counts alone."""
    run_id = await waiting(alone)
    sweeper = Sweeper(alone)
    await sweeper.sweep()
    assert sweeper.lists.read == 1
    await eventually(sweeper.agrees, "the counts agree")
    queue = alone.settings.temporal.task_queue
    late = await alone.accept(APPLICATION, at=datetime.now(UTC) - LONG_AGO, task_queue=queue)
    before, report = sweeper.lists.read, await sweeper.sweep()
    assert (report.started, report.seen, report.whole, sweeper.lists.read) == (1, 2, True, before)
    await alone.reaches(late.run_id, "AWAITING_REVIEW")
    await eventually(sweeper.agrees, "the counts agree")
    async with alone.db.transaction() as conn:
        await conn.execute("update agent_ops.agent_runs set version = version + 5 where run_id = %s", (run_id,))
    before = sweeper.lists.read
    await sweeper.sweep()
    assert sweeper.lists.read == before
    assert "newer than the run itself" in (await alone.run(run_id)).incident["reason"]


async def test_a_run_that_is_gone_shows_in_the_counts(alone: House) -> None:
    """DA-8. One terminated from outside is missing in the engine's count, so the list is read and its row closed."""
    run_id, fine = await waiting(alone), await waiting(alone)
    sweeper = Sweeper(alone)
    await eventually(sweeper.agrees, "the counts agree")
    name = alone.client.namespace
    await temporal(
        alone, "workflow", "terminate", "--namespace", name, "--workflow-id", str(run_id), "--reason", "hung"
    )

    async def closed() -> bool:
        return (await sweeper.sweep()).failed == 1

    await eventually(closed, "the sweep has closed the run")
    assert "hung" in str((await alone.run(run_id)).failure)
    assert (await alone.run(fine)).status == "AWAITING_REVIEW"


async def test_a_run_that_bears_an_incident_is_looked_at(alone: House) -> None:
    """DA-19. Counts say nothing of one that is flagged, so the list is read until the flag is gone."""
    run_id = await waiting(alone)
    sweeper = Sweeper(alone)
    await eventually(sweeper.agrees, "the counts agree")
    flag = """update agent_ops.agent_runs set incident = '{"kind": "engine", "reason": "stuck", "at": "2026-01-01"}'
              where run_id = %s"""
    async with alone.db.transaction() as conn:
        await conn.execute(flag, (run_id,))
    before = sweeper.lists.read
    await sweeper.sweep()
    assert sweeper.lists.read == before + 1
    assert (await alone.run(run_id)).incident is None
    assert await sweeper.agrees()
