"""Many cases side by side while workers are killed every few seconds; then API, database and engine are killed too.

First the cases go through with only workers dying. Then, for each server, some more are begun, the server is killed
with all of its processes while they are under way, others are begun while it is away, and after some seconds the stack
starts it again on the same data. Workers die all the time. The client is a careful one: what got no answer is sent
again under the same idempotency key. When everything is at rest one case is approved and one rejected, and then the
books are read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from casework.drills import storm_books
from casework.drills.client import Client
from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError, Report
from casework.drills.storm_cases import BLOWS, Case, StormPlan
from casework.drills.storm_force import Reaper

NAME = "storm"
TITLE = "Workers are killed every few seconds, then the API, the database and the engine"
STANDING_BY = 4
"""Workers: about half of them are just starting, because a new one takes seconds."""
PATIENCE_S = 180.0
"""How long a case may take, and how long a request is sent again."""
LOOK_EVERY_S = 0.5
REST = frozenset({"AWAITING_REVIEW", "COMPLETED", "FAILED", "CANCELLED"})
STRIKE_S = 1.0
"""Database and engine are killed so many seconds after the first case was accepted, so that steps are in flight."""
OUTAGE_S = 3.0
"""How long a killed server stays away, so that clients and workers meet its absence."""


class Gauge(Protocol):
    """Who shows how far a storm is."""

    def show(self, at_rest: int, of: int, under_way: int, killed: int) -> None:
        """So many cases have come to rest, so many workers were killed."""
        ...


class Storm:
    """One storm over one ground."""

    def __init__(self, ground: Ground, report: Report, plan: StormPlan, gauge: Gauge) -> None:
        self._ground = ground
        self._report = report
        self._plan = plan
        self._gauge = gauge
        self._api = Client(ground.stack.api_url, ground.stack.token, patience_s=PATIENCE_S)
        self._under_way: set[str] = set()
        self._accepted = asyncio.Event()
        self._at_rest: dict[str, str] = {}
        self._began = time.monotonic()
        self.reaper = Reaper(ground, plan.kill_every_s, self._under_way)

    async def blow(self) -> None:
        """The whole storm; what held is in the report."""
        crew, report = self._ground.crew, self._report
        await crew.staff(STANDING_BY)
        # Nothing restarts servers in the first part: one that dies unasked is to be seen.
        keepers = (crew.keep(STANDING_BY), self.reaper.run(), self._tell())
        async with self._api:
            self._began = time.monotonic()
            await beside(self._cases(), *keepers)
            await crew.staff(2)
            await self._decisions()
            await storm_books.judge(self._ground, report, self._plan, self._api)

    async def _cases(self) -> None:
        report, crew, first = self._report, self._ground.crew, self._plan.first
        await self._through(first)
        seconds = time.monotonic() - self._began
        report.tell(f"{len(first)} cases came to rest in {seconds:.0f} s; {crew.killed} workers were killed meanwhile.")
        report.counts.update(seconds_of_the_first_part=round(seconds, 1), kills_in_the_first_part=crew.killed)
        for number, server in enumerate(BLOWS):
            await self._struck(server, self._plan.struck_by(number))
        report.counts.update(kills_of_workers=crew.killed, servers_killed=list(BLOWS), kills_waited=self.reaper.spared)

    async def _through(self, cases: Sequence[Case]) -> None:
        gate = asyncio.Semaphore(self._plan.side_by_side)

        async def one(case: Case) -> None:
            async with gate:
                await self._one(case)

        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(one(case))

    async def _one(self, case: Case) -> None:
        run_id = self._ground.run_id(case.key)
        self._under_way.add(run_id)
        given = await self._api.submit(self._ground.rehearsal.workflow, case.input, case.key)
        if given != run_id:
            raise BrokenOffError(f"The key {case.key!r} gave run {given}, and it should have given {run_id}.")
        self._accepted.set()
        found = await self._api.until(
            run_id, lambda run: run["status"] in REST, "come to rest", PATIENCE_S, every_s=LOOK_EVERY_S
        )
        self._at_rest[run_id] = found["status"]
        self._under_way.discard(run_id)

    async def _struck(self, server: str, cases: Sequence[Case]) -> None:
        """Kill a server with half of the cases under way, begin the others while it is away, and see all through."""
        self._accepted.clear()
        half = (len(cases) + 1) // 2
        going = [asyncio.create_task(self._through(cases[:half]))]
        try:
            # The API is struck at once, so that requests are cut off; the others when steps are in flight.
            await self._accepted.wait()
            await asyncio.sleep(0 if server == "api" else STRIKE_S)
            under_way = len(self._under_way)
            pid = self._ground.stack.kill_server(server)
            self._report.tell(f"{server} (process {pid}) was killed (SIGKILL) with {under_way} cases under way.")
            going.append(asyncio.create_task(self._through(cases[half:])))
            await asyncio.sleep(OUTAGE_S)
            await beside(_all_of(going), self._ground.stack.watch(self._report.tell))
        finally:
            for each in going:
                each.cancel()
        self._report.tell(f"All {len(cases)} cases came to rest; {len(cases) - half} of them were begun meanwhile.")

    async def _decisions(self) -> None:
        """One is approved, one rejected."""
        rehearsal = self._ground.rehearsal
        for case, command in zip(self._plan.cases, (rehearsal.approve, rehearsal.reject), strict=False):
            run = await self._api.run(self._ground.run_id(case.key))
            if run["status"] == "AWAITING_REVIEW":
                await self._api.decide(run["review"]["review_id"], command, "The drill decides.", wait_s=None)
                ended = await self._api.until_end(run["run_id"])
                self._report.tell(f"Case {case.key}: {command}; it is {ended['status']}, {ended['outcome']}.")

    async def _tell(self) -> None:
        while True:
            done = len(self._at_rest)
            self._gauge.show(done, len(self._plan.cases), len(self._under_way), self._ground.crew.killed)
            await asyncio.sleep(1)


async def _all_of(going: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.gather(*going)


async def beside(story: Coroutine[Any, Any, None], *keepers: Coroutine[Any, Any, None]) -> None:
    """Run the story with its keepers; it ends with the first error of any of them, and they end with it."""
    told = asyncio.ensure_future(story)
    others = [asyncio.ensure_future(keeper) for keeper in keepers]
    try:
        done, _ = await asyncio.wait([told, *others], return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    finally:
        for each in (told, *others):
            each.cancel()
        await asyncio.gather(told, *others, return_exceptions=True)


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside: the others followed from it."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


def played(plan: StormPlan, gauge: Gauge) -> Callable[[Ground, Report], Coroutine[Any, Any, None]]:
    """The storm as `scenarios.played` takes it."""

    async def play(ground: Ground, report: Report) -> None:
        await Storm(ground, report, plan, gauge).blow()

    return play
