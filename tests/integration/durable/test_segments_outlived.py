"""A segment that goes on although the engine has given its attempt up: two walk the same chain at one time.

The worker of the first is cut off from the engine and not from the database. The second begins behind it, or beside it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casework import ids
from casework.agents.tools import ToolContext, tool
from casework.app import App
from casework.durable import contracts
from casework.durable.contracts import CancelRequest
from casework.durable.worker import make_worker
from casework.store import runs
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.test_late_cancels import Gate
from tests.integration.durable.test_lost_attempts import Losing
from tests.integration.durable.test_segments import seen, started, started_plain
from tests.integration.durable.test_segments_survive import TRANSFER, booked, prepared, waits_for_a_lock

ROUNDS = 3


@dataclass
class Cut:
    """A house whose first segment is cut off; it stops in each call that is in `holds` until that is set."""

    house: House
    gate: Gate
    calls: list[tuple[str, int]]
    holds: dict[tuple[str, int], threading.Event] = field(default_factory=dict)

    def act(self, name: str, calls: int) -> None:
        self.calls.append((name, calls))
        if (name, calls) in self.holds:
            self.holds[name, calls].wait(120)

    async def begins(self, name: str, calls: int) -> None:
        """Wait until the tool is called so often."""

        async def look() -> bool:
            return (name, calls) in self.calls

        await eventually(look, f"call {calls} of {name}")

    async def stands(self, run_id: UUID, path: str, state: str) -> None:
        """Wait until a step is in a state."""

        async def look() -> bool:
            return any((each.path, each.state) == (path, state) for each in await self.house.steps(run_id))

        await eventually(look, f"{path} is {state}")

    async def late(self, run_id: UUID, path: str) -> None:
        """Wait until the first attempt at `path` has come too late."""

        async def look() -> bool:
            return any((each.path, each.kind) == (path, "attempt_late:1") for each in await self.house.events(run_id))

        await eventually(look, f"the first attempt of {path} is late")


@asynccontextmanager
async def cut(house: House, folder: Path, gate: Gate, *holds: tuple[str, int]) -> AsyncIterator[Cut]:
    """A worker whose first segment nobody hears of, with a gate before another activity."""
    made = Cut(house, gate, [], {each: threading.Event() for each in holds})
    house.app = loop_app(folder, made.act)
    await house.open()
    losing = Losing(1, begin=True, kinds=(contracts.RUN_SEGMENT,))
    settings = replace(house.settings, worker=replace(house.settings.worker, graceful_stop_s=0))
    async with make_worker(house.client, house.services(), settings, watching=[losing, gate]):
        try:
            yield made
        finally:
            gate.open.set()
            for each in made.holds.values():
                each.set()


async def usual(house: House) -> dict[str, Any]:
    """What is seen of a run without segments, with the same worker."""
    run_id = await started_plain(house, ROUNDS)
    await house.reaches(run_id, "COMPLETED")
    return await seen(house, run_id)


async def outcomes(house: House, run_id: UUID, path: str) -> list[str | None]:
    async with house.db.transaction() as conn:
        found = await runs.attempts(conn, TENANT, run_id)
    return [each.outcome for each in found if each.step_id == ids.step_id(run_id, path)]


async def test_one_that_is_cut_off_may_go_to_the_end(house: House, tmp_path: Path) -> None:
    """AW-11, DA-26. The second finds all that the first has written, and calls nothing; a reader sees no difference."""
    gate = Gate(contracts.RUN_SEGMENT, 2)
    async with cut(house, tmp_path, gate, ("second", 2)) as at:
        run_id = await started(house, ROUNDS)
        await asyncio.wait_for(gate.reached.wait(), 60)
        at.holds["second", 2].set()
        await at.stands(run_id, f"second.{ROUNDS}", "COMPLETED")
        gate.open.set()
        await house.reaches(run_id, "COMPLETED")
        assert Counter(name for name, _ in at.calls) == {"first": ROUNDS, "second": ROUNDS}
        assert await seen(house, run_id) == await usual(house)


async def test_one_that_is_cut_off_goes_ahead_of_the_run(house: House, tmp_path: Path) -> None:
    """AW-11, DA-26. It writes what the run was about to do alone; the next node it has only begun. Each counts once."""
    gate = Gate(contracts.CALL_TOOL, 1)
    async with cut(house, tmp_path, gate, ("second", 2), ("first", 3)) as at:
        run_id = await started(house, ROUNDS)
        await asyncio.wait_for(gate.reached.wait(), 60)
        at.holds["second", 2].set()
        await at.stands(run_id, "first.3", "STARTED")
        gate.open.set()
        await house.reaches(run_id, "COMPLETED")
        at.holds["first", 3].set()
        await at.late(run_id, "first.3")
        assert Counter(name for name, _ in at.calls) == {"first": ROUNDS + 1, "second": ROUNDS}
        assert await outcomes(house, run_id, "first.3") == ["LATE", "COMPLETED"]
        assert await outcomes(house, run_id, "second.2") == ["COMPLETED"]
        await same_but_for(house, run_id, "first.3")


async def test_one_that_is_cut_off_comes_too_late(house: House, tmp_path: Path) -> None:
    """AW-11, DA-26. The run has gone on without it: what it brings is kept with its attempt, and it goes no further."""
    async with cut(house, tmp_path, Gate("none", 0), ("second", 2)) as at:
        run_id = await started(house, ROUNDS)
        await house.reaches(run_id, "COMPLETED")
        at.holds["second", 2].set()
        await at.late(run_id, "second.2")
        assert Counter(name for name, _ in at.calls) == {"first": ROUNDS, "second": ROUNDS + 1}
        assert await outcomes(house, run_id, "second.2") == ["LATE", "COMPLETED"]
        await same_but_for(house, run_id, "second.2")


async def same_but_for(house: House, run_id: UUID, path: str) -> None:
    """That a run is what it is without segments, but for the attempt at `path` that was lost."""
    found, expected = await seen(house, run_id), await usual(house)
    assert {key: found[key] for key in ("run", "context", "trace")} == {
        key: expected[key] for key in ("run", "context", "trace")
    }
    of_attempts = [each[:2] for each in found["events"] if each[1].startswith("attempt_")]
    assert of_attempts == [(path, "attempt_lost:1"), (path, "attempt_late:1")]
    told = [each for each in found["events"] if not each[1].startswith(("attempt_", "run_stale"))]
    assert told == expected["events"]
    again = [(*each[:5], each[5] - (each[0] == path), *each[6:]) for each in found["steps"]]
    assert again == expected["steps"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_one_that_is_cut_off_from_a_cancelled_run(house: House, tmp_path: Path, when: str) -> None:
    """AW-11, DA-16. The run ends where the rows say that it was; what still acts then changes nothing."""
    gate = Gate(contracts.RUN_SEGMENT, 2)
    async with cut(house, tmp_path, gate, ("second", 2)) as at:
        run_id = await started(house, ROUNDS)
        if when == "after":
            await asyncio.wait_for(gate.reached.wait(), 60)
        else:
            await at.begins("second", 2)
        await house.runs.cancel(str(run_id), CancelRequest("ann", "enough"))
        row = await house.reaches(run_id, "CANCELLED")
        at.holds["second", 2].set()
        await at.late(run_id, "second.2")
        assert (row.current_node, row.loop_count) == ("second", 6)
        assert await house.run(run_id) == row
        steps = {step.path: (step.state, step.attempt) for step in await house.steps(run_id)}
        assert steps.pop("second.2") == ("FAILED", 1)
        assert set(steps) == {"first.1", "second.1", "first.2"}
        assert set(steps.values()) == {("COMPLETED", 1)}


@pytest.mark.parametrize("held", ["before it books", "behind it"])
async def test_an_effect_in_a_transaction_is_committed_once(house: House, tmp_path: Path, held: str) -> None:
    """AW-11, DA-27. Two executions are there when a transactional tool of a segment acts; it books once."""
    gate, go_on = Gate(contracts.RUN_SEGMENT, 2), asyncio.Event()

    @tool(repeat="transactional")
    async def book(ctx: ToolContext, amount: int) -> int:
        """Book an amount."""
        if held == "before it books" and ctx.path == "give.1":
            await go_on.wait()
        await ctx.connection.execute(
            "insert into public.casework_test_books (path, amount) values (%s, %s)", (ctx.path, amount)
        )
        if held == "behind it" and ctx.path == "give.1":
            await go_on.wait()
        return amount

    await prepared(house)
    manifest = tmp_path / "transfer.yaml"
    manifest.write_text(TRANSFER)
    house.app = App(tools=[book], manifests=[manifest])
    await house.open()
    losing = Losing(1, begin=True, kinds=(contracts.RUN_SEGMENT,))
    async with make_worker(house.client, house.services(), house.settings, watching=[losing, gate]):
        run_id = await house.start({}, "transfer")
        await asyncio.wait_for(gate.reached.wait(), 60)
        gate.open.set()
        await eventually(lambda: waits_for_a_lock(house), "the second waits for the first", 30)
        go_on.set()
        await house.reaches(run_id, "COMPLETED")
    assert await booked(house) == [("give.1", 5), ("take.1", -5)]
    assert {(step.state, step.attempt) for step in await house.steps(run_id)} == {("COMPLETED", 1)}
