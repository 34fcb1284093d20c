"""A whole local stack (API, worker, Temporal, PostgreSQL, each a process) and a crowd of runs that wait for review."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from uuid import uuid4

import httpx2
import psycopg
from temporalio.api.enums.v1 import EventType

from benchmarks.support.approval import REFERENCE, WORKFLOW
from benchmarks.support.processes import cpu_seconds, family, pss_mb
from casework.cli.supervisor import Stack
from casework.drills.client import Client
from casework.durable import contracts
from casework.durable.connection import connect
from casework.settings import Settings

SIDE_BY_SIDE = 12
"""Runs that are being started at one moment."""
LOOK_EVERY_S = 0.5
PATIENCE_S = 60.0

_WAITING: LiteralString = "select count(*) from agent_ops.agent_runs where status = 'AWAITING_REVIEW'"
_CONNECTIONS: LiteralString = """
    select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"""


@dataclass(frozen=True)
class Use:
    """What the processes use: memory in MB, processor time in seconds."""

    worker_mb: float
    api_mb: float
    temporal_mb: float
    worker_s: float
    api_s: float
    temporal_s: float
    postgres_s: float


class Crowd:
    """Runs on one stack, in a folder of its own; what is stopped can be started again with the same data."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._numbers: Iterator[int] = iter(range(10**9))
        self._stack = Stack(home, Settings(), REFERENCE)
        self._api = Client("http://127.0.0.1", "")
        self._http = httpx2.AsyncClient()

    async def start(self) -> None:
        """Start every process, with the data of an earlier start where there is some."""
        self._stack = Stack(self._home, Settings(), REFERENCE)
        await self._stack.start(workers=1)
        self._api = Client(self._stack.api_url, self._stack.token)
        headers = {"Authorization": f"Bearer {self._stack.token}"}
        self._http = httpx2.AsyncClient(base_url=self._stack.api_url, headers=headers, timeout=30, trust_env=False)

    async def stop(self) -> None:
        """Stop every process."""
        await self._api.close()
        await self._http.aclose()
        await self._stack.stop()

    async def grow(self, runs: int, until: float = float("inf")) -> int:
        """Start so many runs over HTTP, or as many as can be until that moment of the clock; wait until all wait.

        Returns:
            How many were started.
        """
        wanted = iter(range(runs))
        before = self.waiting()
        started = sum(await asyncio.gather(*(self._submit(wanted, until) for _ in range(SIDE_BY_SIDE))))
        await self._all_wait(before + started)
        return started

    async def _all_wait(self, runs: int) -> None:
        """Raises TimeoutError when nothing has moved for a while."""
        seen, moved = -1, time.monotonic()
        while (waiting := self.waiting()) < runs:
            if waiting != seen:
                seen, moved = waiting, time.monotonic()
            if time.monotonic() - moved > PATIENCE_S:
                raise TimeoutError(f"{waiting} of {runs} runs wait for review, and no more for {PATIENCE_S:.0f} s")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _submit(self, wanted: Iterator[int], until: float) -> int:
        started = 0
        for _ in wanted:
            if time.monotonic() > until:
                break
            await self._api.submit(WORKFLOW, {"number": next(self._numbers)}, uuid4().hex)
            started += 1
        return started

    def waiting(self) -> int:
        """Runs that wait for review, by their rows."""
        return self._number(_WAITING)

    def connections(self) -> int:
        """Connections to PostgreSQL, of all processes together."""
        return self._number(_CONNECTIONS)

    def _number(self, query: LiteralString) -> int:
        with psycopg.connect(self._stack.admin_dsn, autocommit=True) as connection:
            found = connection.execute(query).fetchone()
        assert found is not None
        return int(found[0])

    async def list_ms(self, limit: int) -> float:
        """Milliseconds for so many of the waiting reviews, the oldest first, over HTTP."""
        began = time.monotonic()
        await self._oldest(limit)
        return (time.monotonic() - began) * 1000

    async def _oldest(self, limit: int) -> list[dict[str, Any]]:
        answer = (await self._http.get("/v1/reviews", params={"limit": limit})).raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def sweep_ms(self) -> float:
        """Milliseconds that one sweep over all runs takes, by the engine's own clock."""
        client = await connect(self._stack.settings)
        queue = self._stack.settings.temporal.task_queue
        handle = await client.start_workflow(contracts.SWEEP_WORKFLOW, id=f"sweep-{uuid4()}", task_queue=queue)
        await handle.result()
        times = {event.event_type: event.event_time async for event in handle.fetch_history_events()}
        began = times[EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED].ToMilliseconds()
        return times[EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED].ToMilliseconds() - began

    def use(self) -> Use:
        """What the processes use now, and have used so far."""
        worker, api, temporal, postgres = self._pids()
        memory = (pss_mb(*worker), pss_mb(*api), pss_mb(*temporal))
        return Use(*memory, cpu_seconds(*worker), cpu_seconds(*api), cpu_seconds(*temporal), cpu_seconds(*postgres))

    def _pids(self) -> tuple[list[int], list[int], list[int], list[int]]:
        api, servers = self._stack.api, self._stack.servers.pids()
        pids = (self._stack.workers[0].pid, api and api.pid, servers["temporal"], servers["postgres"])
        assert all(pids)
        worker, serving, temporal, postgres = (family(pid) for pid in pids if pid)
        return worker, serving, temporal, postgres

    async def approve_one(self) -> str:
        """Approve the run that has waited longest; its status in the end."""
        review = (await self._oldest(1))[0]
        status, body = await self._api.decide(review["review_id"], "approve", "waited long enough", wait_s=30)
        if status != 200:
            raise RuntimeError(f"the approval was answered {status}: {body}")
        ended = await self._api.until_end(review["run_id"])
        return f"{ended['status']} {ended['outcome']}"
