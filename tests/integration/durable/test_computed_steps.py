"""Tools of a segment that only compute: their rows are written when they have ended, and none before."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from temporalio.testing import ActivityEnvironment

from casework import ids
from casework.durable import contracts
from casework.durable.activities.segment import SegmentActivity
from casework.durable.publish import publish
from casework.durable.segment_contracts import SegmentReply
from casework.errors import FatalError, RetryableError, ToldError
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import House
from tests.integration.durable.test_segments import RESCUED, activities, both, started
from tests.integration.durable.test_segments_survive import asked
from tests.integration.durable.worker_processes import killed_when

BOTH = ("first", "second")
APP = "tests.integration.durable.killed_computing_app:app"
ROWS = "select path, state from agent_ops.agent_steps order by started_at, path"


class Looks:
    """What each tool finds in the ledger when it acts, by its name and call."""

    def __init__(self, house: House) -> None:
        self._dsn = house.dsn
        self.found: dict[str, list[tuple[str, str]]] = {}

    def act(self, name: str, calls: int) -> None:
        with psycopg.connect(self._dsn) as conn:
            self.found[f"{name}.{calls}"] = conn.execute(ROWS).fetchall()


@pytest.mark.parametrize("computing", [BOTH, ("second",), ("first",)])
async def test_a_chain_leaves_what_the_nodes_alone_leave(
    house: House, tmp_path: Path, computing: tuple[str, ...]
) -> None:
    """AW-11, DA-26. Rows, attempts, events and figures are those of claimed steps, in mixed chains too."""
    quick, alone, run_id = await both(house, tmp_path, lambda _name, _calls: None, 4, "COMPLETED", computing=computing)
    assert quick == alone
    assert Counter(await activities(house, run_id)) == {contracts.RUN_SEGMENT: 1, contracts.PROJECT: 1}
    assert {(step.state, step.attempt) for step in await house.steps(run_id)} == {("COMPLETED", 1)}


async def test_a_step_that_only_computes_has_no_row_before_it_has_ended(house: House, tmp_path: Path) -> None:
    """AW-11, DA-26. The one before is committed, as ever. The first of a segment is claimed, since it may be there."""
    looks = Looks(house)
    async with house.with_app(loop_app(tmp_path, looks.act, computing=BOTH)) as busy:
        await busy.reaches(await started(busy, 2), "COMPLETED")
    assert looks.found == {
        "first.1": [("first.1", "STARTED")],
        "second.1": [("first.1", "COMPLETED")],
        "first.2": [("first.1", "COMPLETED"), ("second.1", "COMPLETED")],
        "second.2": [("first.1", "COMPLETED"), ("second.1", "COMPLETED"), ("first.2", "COMPLETED")],
    }


@pytest.mark.parametrize("computing", [(), ("first",), ("second",)])
async def test_every_other_step_is_claimed_before_it_acts(
    house: House, tmp_path: Path, computing: tuple[str, ...]
) -> None:
    """AW-11, DA-26. One with effects, and one that only reads but has a thread, also behind one that computes."""
    looks = Looks(house)
    async with house.with_app(loop_app(tmp_path, looks.act, computing=computing)) as busy:
        await busy.reaches(await started(busy, 2), "COMPLETED")
    begun = {path for path, rows in looks.found.items() if (path, "STARTED") in rows}
    assert begun == {f"{name}.{n}" for name in BOTH for n in (1, 2) if name not in computing} | {"first.1"}


@pytest.mark.parametrize("edges", ["", RESCUED])
@pytest.mark.parametrize("error", [RetryableError("busy"), FatalError("over"), ToldError("no"), ValueError("what")])
async def test_one_that_fails_is_told_as_any_other(house: House, tmp_path: Path, error: Exception, edges: str) -> None:
    """AW-11, DA-24. Its try in the segment is the first attempt, with a row; the node goes on alone from there."""

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 2:
            raise error

    end = "FAILED" if isinstance(error, FatalError) or (isinstance(error, ToldError) and not edges) else "COMPLETED"
    quick, alone, run_id = await both(house, tmp_path, act, 3, end, computing=BOTH, edges=edges)
    assert quick == alone
    kinds = [kind for kind in await activities(house, run_id) if kind != contracts.PROJECT]
    assert kinds.count(contracts.CALL_TOOL) == (not isinstance(error, (FatalError, ToldError)))


async def test_one_that_always_fails_has_no_attempt_more_than_alone(house: House, tmp_path: Path) -> None:
    """AW-11. Three attempts are three, wherever they are made."""

    def act(name: str, calls: int) -> None:
        if name == "second" and calls >= 2:
            raise RetryableError("busy")

    quick, alone, run_id = await both(house, tmp_path, act, 3, "FAILED", computing=BOTH)
    assert quick == alone
    assert {step.path: step.attempt for step in await house.steps(run_id)}["second.2"] == 3


async def test_a_worker_that_is_killed_in_one_leaves_no_trace_of_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AW-11, DA-26. SIGKILL while it computes: nothing that is committed is done again, and it is done as if never
    begun, by the segment itself."""
    monkeypatch.setenv("CASEWORK_TEST_FOLDER", str(tmp_path))
    chain = importlib.import_module("tests.integration.durable.killed_computing_app")
    here = replace(house, app=chain.app)
    await publish(here.app, here.db)
    run_id = await started(here, 5)
    await killed_when(chain.HANGS.exists, "the third call hangs", here, APP, tmp_path)
    before = {step.path: step.state for step in await here.steps(run_id)}
    assert before == dict.fromkeys(("first.1", "second.1", "first.2", "second.2", "first.3"), "COMPLETED")
    async with here.worker():
        row = await here.reaches(run_id, "COMPLETED")
    assert row.loop_count == 16
    assert Counter(chain.CALLS.read_text().split()) == {"first": 5, "second": 6}
    assert {(step.state, step.attempt) for step in await here.steps(run_id)} == {("COMPLETED", 1)}
    assert [kind for kind in await activities(here, run_id) if kind != contracts.PROJECT] == [contracts.RUN_SEGMENT]
    told = [(each.path, each.kind) for each in await here.events(run_id)]
    assert len(told) == len(set(told))
    assert not [kind for _, kind in told if kind.startswith(("run_stale", "attempt_lost"))]


async def test_a_segment_that_is_done_again_claims_each(house: House, tmp_path: Path) -> None:
    """AW-11, DA-18. So one that takes its worker along is seen to: it has its attempts, and no more."""
    looks = Looks(house)
    reply, _ = await walked(house, loop_app(tmp_path, looks.act, computing=BOTH), attempt=2)
    assert [each.path for each in reply.visits if each.path.startswith("second")] == ["second.1", "second.2"]
    assert {path for path, rows in looks.found.items() if (path, "STARTED") in rows} == set(looks.found)


@pytest.mark.parametrize("state", ["STARTED", "COMPLETED"])
async def test_one_that_somebody_else_has_taken_meanwhile_ends_the_segment(
    house: House, tmp_path: Path, state: str
) -> None:
    """AW-11, DA-26. Another execution was first: its row stands, and nothing is told of what was computed here."""

    def act(name: str, calls: int) -> None:
        if (name, calls) == ("second", 1):
            with psycopg.connect(house.dsn) as conn:
                [run_id] = conn.execute("select run_id from agent_ops.agent_runs").fetchone() or ()
                conn.execute(
                    "insert into agent_ops.agent_steps (step_id, run_id, path, kind, name, state, attempt, started_at,"
                    " updated_at, ended_at) values (%s, %s, 'second.1', 'tool', 'second', %s, 1, now(), now(), %s)",
                    (ids.step_id(run_id, "second.1"), run_id, state, None if state == "STARTED" else "now"),
                )

    reply, run_id = await walked(house, loop_app(tmp_path, act, computing=BOTH))
    assert [each.path for each in reply.visits] == ["go_on.1", "first.1"]
    assert (reply.begun, reply.tried, reply.fault, reply.cut) == ("second.1", False, None, True)
    steps = {step.path: (step.state, step.result) for step in await house.steps(run_id)}
    assert steps == {"first.1": ("COMPLETED", {"n": 1}), "second.1": (state, None)}
    told = [(each.path, each.kind) for each in await house.events(run_id)]
    assert ("second.1", "agent.node_started") in told
    assert ("second.1", "agent.tool_completed") not in told


async def walked(house: House, app: Any, attempt: int = 1) -> tuple[SegmentReply, UUID]:
    """What a segment of two rounds gives that is executed for the `attempt`th time; and its run."""
    house.app = app
    await house.open()
    row = await house.accept({"rounds": 2}, "loop")
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    reply: SegmentReply = await environment.run(SegmentActivity(house.services()).run_segment, asked(house, row))
    return reply, row.run_id
