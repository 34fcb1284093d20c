"""Attempts that are lost with their worker: what nobody began counts for nothing, what was begun is counted once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from casework.agents import Repeat, ToolContext, tool
from casework.durable import contracts, policies
from casework.durable.worker import make_worker
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import House

LOOK: list[tuple[str, dict[str, object]]] = [("look", {})]


class Losing(Interceptor):
    """To the engine, the first so many attempts of a tool are lost with their worker: nobody hears of them again.
    Attempts of a segment are, if it is of the `kinds`.

    With `begin` they go on all the same, without heartbeats; else they are never begun, as at a worker that is dead.
    """

    def __init__(self, number: int, *, begin: bool, kinds: Collection[str] = (contracts.CALL_TOOL,)) -> None:
        self.left = number
        self.kinds = kinds
        self.begin = begin
        self.over = asyncio.Event()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # the SDK's name
        return _Lost(next, self)


class _Lost(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, by: Losing) -> None:
        super().__init__(inner)
        self._by = by
        self._silent = _Silent()

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._silent.next = outbound
        super().init(self._silent)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        if activity.info().activity_type in self._by.kinds and self._by.left:
            self._by.left -= 1
            self._silent.silent = True
            if not self._by.begin:
                await self._by.over.wait()
        return await super().execute_activity(input)


class _Silent(ActivityOutboundInterceptor):
    next: ActivityOutboundInterceptor

    def __init__(self) -> None:
        self.silent = False

    def heartbeat(self, *details: Any) -> None:
        if not self.silent:
            self.next.heartbeat(*details)


@asynccontextmanager
async def worker(house: House, losing: Losing) -> AsyncIterator[None]:
    settings = replace(house.settings, worker=replace(house.settings.worker, graceful_stop_s=0))
    async with make_worker(house.client, house.services(), settings, watching=[losing]):
        try:
            yield
        finally:
            losing.over.set()


async def test_attempts_that_nobody_began_are_not_used(house: House, tmp_path: Path) -> None:
    """DA-18. All attempts go to workers that are dead when they get them: the tool has each of its own left."""
    calls: list[int] = []

    @tool(repeat=Repeat.KEYED)
    def look(ctx: ToolContext) -> str:
        """Look, in vain twice."""
        calls.append(ctx.attempt)
        if len(calls) < policies.TOOL.attempts:
            raise ConnectionError("no line")
        return "found"

    house.app = errand(tmp_path, [look], asking(LOOK))
    await house.open()
    async with worker(house, Losing(policies.TOOL.attempts, begin=False)):
        run_id = await house.start({}, "errand")
        row = await house.reaches(run_id, "AWAITING_REVIEW")
    assert "found" in row.recommendation
    assert calls == [1, 2, 3]


async def test_a_tool_that_takes_its_worker_along_has_its_attempts_and_no_more(house: House, tmp_path: Path) -> None:
    """DA-18. Each worker that begins it is lost: it acts as often as it has attempts, then the model is told."""
    calls: list[int] = []
    go_on = threading.Event()

    @tool(repeat=Repeat.KEYED)
    def look(ctx: ToolContext) -> str:
        """Look, and never come back."""
        calls.append(ctx.attempt)
        go_on.wait(60)
        return "too late"

    house.app = errand(tmp_path, [look], asking(LOOK))
    await house.open()
    try:
        async with worker(house, Losing(100, begin=True)):
            run_id = await house.start({}, "errand")
            row = await house.reaches(run_id, "AWAITING_REVIEW")
            go_on.set()
    finally:
        go_on.set()
    assert "given up: the worker that ran it was lost, at the last of 3 attempts too" in row.recommendation
    assert calls == [1, 2, 3]
    (step,) = [each for each in await house.steps(run_id) if each.kind == "tool"]
    assert (step.state, step.attempt) == ("FAILED", 3)
