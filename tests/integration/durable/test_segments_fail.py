"""What fails in a segment, and what is lost there: as many attempts as alone, and the same told of them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from uuid import UUID

import pytest
from temporalio.testing import ActivityEnvironment

from casework import ids
from casework.durable import contracts
from casework.durable.activities.segment import SegmentActivity
from casework.errors import FatalError, OperationError, PolicyUnavailableError, RetryableError
from casework.store import runs
from casework.store.rows import AttemptRow
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.test_lost_attempts import Losing, worker
from tests.integration.durable.test_segments import RESCUED, activities, both, started
from tests.integration.durable.test_segments_survive import Lock, asked, waits_for_a_lock


class OverError(FatalError):
    """An application's own."""


@pytest.mark.parametrize("edges", ["", RESCUED])
@pytest.mark.parametrize("kind", [FatalError, OverError, PolicyUnavailableError])
async def test_a_fault_that_no_attempt_would_mend_is_not_tried_again(
    house: House, tmp_path: Path, kind: type[OperationError], edges: str
) -> None:
    """AW-11. The tool acts once, in the segment; rows, events and the end are those of the node alone."""
    acted: list[str] = []

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 2:
            acted.append(name)
            raise kind("it is over")

    end = "COMPLETED" if edges and kind is OverError else "FAILED"
    with_segments, without, run_id = await both(house, tmp_path, act, 3, end, edges=edges)
    assert with_segments == without
    assert acted == ["second", "second"], "once in each run"
    if end == "FAILED":
        assert with_segments["run"][3] == "second.2: it is over"
    assert contracts.CALL_TOOL not in await activities(house, run_id)


async def test_the_next_attempt_comes_when_the_peer_has_asked_for_it(house: House, tmp_path: Path) -> None:
    """AW-11. A pause that a failure in a segment asks for is kept, as alone."""

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 1:
            raise RetryableError("busy", retry_after=1.5)

    async with house.with_app(loop_app(tmp_path, act)) as busy:
        run_id = await started(busy, 1)
        await busy.reaches(run_id, "COMPLETED")
    first, again = await attempts_of(house, run_id, "second.1")
    assert first.outcome == "FAILED"
    assert first.ended_at is not None
    assert (again.started_at - first.ended_at).total_seconds() >= 1.4


async def attempts_of(house: House, run_id: UUID, path: str) -> list[AttemptRow]:
    async with house.db.transaction() as conn:
        return [each for each in await runs.attempts(conn, TENANT, run_id) if each.step_id == ids.step_id(run_id, path)]


async def test_a_tool_that_takes_its_worker_along_in_a_segment_has_no_attempt_more(
    house: House, tmp_path: Path
) -> None:
    """AW-11, DA-18. The attempt that was lost in the segment is one of those that the tool has."""
    acted: list[int] = []
    go_on = threading.Event()

    def act(name: str, calls: int) -> None:
        if name == "second" and not go_on.is_set():
            acted.append(calls)
            go_on.wait(60)

    house.app = loop_app(tmp_path, act)
    await house.open()
    losing = Losing(100, begin=True, kinds=(contracts.RUN_SEGMENT, contracts.CALL_TOOL))
    try:
        async with worker(house, losing):
            run_id = await started(house, 1)
            row = await house.reaches(run_id, "FAILED")
            go_on.set()
    finally:
        go_on.set()
    assert row.failure == "second.1: the worker that ran it was lost, at the last of 3 attempts too"
    assert acted == [1, 2, 3]
    steps = {step.path: (step.state, step.attempt) for step in await house.steps(run_id)}
    assert steps == {"first.1": ("COMPLETED", 1), "second.1": ("FAILED", 3)}


async def test_a_visit_that_is_written_while_its_worker_stops_is_reported(house: House, tmp_path: Path) -> None:
    """AW-11, DA-27. Who stops waits for the write that is under way: what is in the rows is in the answer too."""
    lock = Lock(house.dsn)

    def act(name: str, _calls: int) -> None:
        if name == "first":
            lock.take()

    house.app = loop_app(tmp_path, act)
    await house.open()
    row = await house.accept({"rounds": 3}, "loop")
    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(SegmentActivity(house.services()).run_segment, asked(house, row)))
    await eventually(lambda: waits_for_a_lock(house), "the link waits for the run's row", 30)
    environment.cancel()
    lock.release()
    reply = await running
    steps = {step.path: step.state for step in await house.steps(row.run_id)}
    assert steps == {"first.1": "COMPLETED", "second.1": "STARTED"}
    assert [each.path for each in reply.visits] == ["go_on.1", "first.1"]
    assert (reply.begun, reply.tried, reply.cut) == ("second.1", False, False)
