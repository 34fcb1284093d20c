"""A tray whose task has lost its limit: played activities, on a real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from casework.durable import process_contracts as contracts
from casework.durable.process_contracts import (
    AT_ONCE,
    Outcome,
    ReleaseTray,
    TrayEnd,
    TrayReply,
    TrayStart,
    TrayWork,
    apart_ms,
    limited_queue,
    station_queue,
)
from casework.durable.trays import tray_id, tray_start
from casework.durable.worker import workflow_runner
from casework.durable.workflows import tray_calls
from casework.durable.workflows.tray import Tray
from casework.durable.workflows.tray_calls import in_queue_s
from casework.process import Transaction
from casework.process.admission import admit
from tests.integration.durable.conftest import eventually
from tests.unit.process.lines import plain, process


@dataclass
class Played:
    """The work of a tray, which is done unless the task turns out to have a limit."""

    limit: float | None = None
    asked: list[TrayWork] = field(default_factory=list)

    @activity.defn(name=contracts.WORK_TRAY)
    async def work(self, asked: TrayWork) -> TrayReply:
        self.asked.append(asked)
        if asked.unlimited and asked.station == "work" and self.limit is not None:
            return TrayReply((), apart_ms=apart_ms(self.limit))
        uuids = [uuid for each in asked.standing for uuid in each.transactions]
        return TrayReply((Outcome("passed", tuple(uuids), "PROCESSING_IN_PROGRESS"),))

    @activity.defn(name=contracts.RELEASE_TRAY)
    async def release(self, _asked: ReleaseTray) -> None:
        pass


def start_of(count: int, limit: float) -> TrayStart:
    claim = uuid4()
    claimed = [
        Transaction(
            uuid=uuid4(), status="PROCESSING_IN_PROGRESS", start_time=datetime(2026, 1, 1, tzinfo=UTC), claim_id=claim
        )
        for _ in range(count)
    ]
    line = admit(process(plain("work"), finalizer=None, tray_size=20))
    return replace(tray_start(line, claimed), apart_ms={"work": apart_ms(limit)})


async def begun(client: Client, queue: str, start: TrayStart) -> WorkflowHandle[Any, TrayEnd]:
    return await client.start_workflow(
        contracts.TRAY_WORKFLOW, start, id=tray_id(start.claim_id), task_queue=queue, result_type=TrayEnd
    )


def in_the_queue(event: HistoryEvent, queue: str) -> bool:
    """Whether it is an activity that was sent to the queue of the limit."""
    return event.activity_task_scheduled_event_attributes.task_queue.name == limited_queue(queue, "work")


@asynccontextmanager
async def worker(client: Client, queue: str, played: Played) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue=station_queue(queue), activities=[played.work]),
        Worker(
            client,
            task_queue=queue,
            workflows=[Tray],
            activities=[played.release],
            workflow_runner=workflow_runner(),
        ),
    ):
        yield


def test_it_is_waited_as_long_as_a_thousand_take() -> None:
    """BP-32: ten minutes at least, a day at most."""
    assert [in_queue_s(apart_ms(limit)) for limit in (1000, 5, 0.5, 1 / 3600)] == [600, 600, 2000, 86_400]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tray_calls, "IN_QUEUE_S", (0.2, 0.2))


@pytest.mark.usefixtures("impatient")
async def test_what_nobody_takes_from_the_queue_of_a_limit_asks_anew(temporal_client: Client) -> None:
    """BP-32: a release without the limit has no worker for its queue; the tray asks where all workers are."""
    played, queue, start = Played(), f"gone-{uuid4().hex}", start_of(12, 5)
    async with worker(temporal_client, queue, played):
        handle = await begun(temporal_client, queue, start)
        assert (await handle.result()).left == 0
    assert all(each.unlimited for each in played.asked)
    assert sum(len(each.transactions) for asked in played.asked for each in asked.standing) == 12
    scheduled = [each async for each in handle.fetch_history_events() if in_the_queue(each, queue)]
    assert len(scheduled) == AT_ONCE, "what came after it did not wait there"


@pytest.mark.usefixtures("impatient")
async def test_a_limit_that_is_still_there_is_kept_to_again(temporal_client: Client) -> None:
    """BP-32: what waited long because the queue is long goes back into it, with the limit as it is now."""
    played, queue, start = Played(limit=7.0), f"long-{uuid4().hex}", start_of(2, 5)
    async with worker(temporal_client, queue, played):
        handle = await begun(temporal_client, queue, start)

        async def asked() -> bool:
            return len(played.asked) > 2

        await eventually(asked, "it was asked several times")
        assert all(each.unlimited for each in played.asked)
        limited = Played()
        async with Worker(
            temporal_client,
            task_queue=limited_queue(queue, "work"),
            activities=[limited.work],
            max_concurrent_activities=1,
        ):
            assert (await handle.result()).left == 0
    assert [len(each.standing[0].transactions) for each in limited.asked] == [1, 1]
    assert not any(each.unlimited for each in limited.asked)
