"""The loops made durable, all on one PostgreSQL: ours on Temporal, LangGraph's Postgres saver, DBOS.

Nobody's commits are made weaker: the server has `synchronous_commit` and `fsync` on, as PostgreSQL has them by itself.
Each contestant has a database of its own, so that its rows can be told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
from dbos import DBOS, DBOSConfig, SetWorkflowID
from langgraph.checkpoint.postgres import PostgresSaver

from benchmarks.graphs.ours import APART, CLAIMED, LOOP, app
from benchmarks.graphs.peers import langgraph_loop
from benchmarks.support.ground import Servers, Side, rows_written, servers, working
from benchmarks.support.processes import cpu_seconds, family
from casework.durable.client import RunClient
from casework.durable.starting import start_of
from casework.durable.worker import make_worker
from casework.examples.loan_underwriting.application import POLICY

OURS, OURS_CLAIMED, OURS_APART = "ours", "ours, each tool claimed", "ours, an activity for each tool"
OURS_SHORT = (OURS_CLAIMED, OURS_APART)
"""These have short turns alone."""
SAVER, SAVER_BEHIND, DBOS_STEPS = "LangGraph's Postgres saver", "the same, a step behind", "DBOS"
_KEPT: LiteralString = "select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint from pg_stat_user_tables"
_LOG: LiteralString = "select (pg_current_wal_lsn() - '0/0')::bigint"
History = Callable[[], Awaitable[int]]
"""Bytes of the engine's history of a run, where there is one: asked for when the time is taken."""
Run = Callable[[int], Awaitable[History]]
"""Runs so many rounds of the loop to their end."""


@dataclass
class Turns:
    """What a contestant's turns took, each figure per step."""

    steps: int = 0
    per_s: list[float] = field(default_factory=list)
    short_per_s: list[float] = field(default_factory=list)
    """The same in short runs, where start and end weigh more."""
    own_ms: list[float] = field(default_factory=list)
    """Processor time of the process that runs the loop."""
    all_ms: list[float] = field(default_factory=list)
    """The same with PostgreSQL and Temporal."""
    log_bytes: list[float] = field(default_factory=list)
    history_bytes: list[float] = field(default_factory=list)
    rows: float = 0.0
    kept_bytes: float = 0.0

    def forget_times(self) -> None:
        """Keep the number of steps, which the database has seen, and nothing that was measured in a turn."""
        for figures in (self.per_s, self.short_per_s, self.own_ms, self.all_ms, self.log_bytes, self.history_bytes):
            figures.clear()


@dataclass
class Contestant:
    """How it runs, on which database, and what stood there before its first turn."""

    run: Run
    dsn: str
    rows: int
    kept: int
    turns: Turns = field(default_factory=Turns)

    async def count(self) -> None:
        """Look at the database when the last session has ended."""
        self.turns.rows = (await rows_written(self.dsn) - self.rows) / self.turns.steps
        self.turns.kept_bytes = (number(self.dsn, _KEPT) - self.kept) / self.turns.steps


class Contest:
    """All contestants, and the servers that work for them."""

    def __init__(self, made: Servers) -> None:
        self.contestants: dict[str, Contestant] = {}
        self._servers = made
        assert made.postgres.pid is not None
        self._postgres = made.postgres.pid

    async def short_turn(self, name: str, rounds: int) -> None:
        """A turn of which nothing but the time counts."""
        contestant, wall = self.contestants[name], time.monotonic()
        await contestant.run(rounds)
        contestant.turns.steps += 2 * rounds
        contestant.turns.short_per_s.append(2 * rounds / (time.monotonic() - wall))

    async def turn(self, name: str, rounds: int) -> None:
        """One turn of one contestant."""
        contestant, steps = self.contestants[name], 2 * rounds
        log, cpu, own, wall = self._log(), self._servers_cpu(), time.process_time(), time.monotonic()
        history = await contestant.run(rounds)
        seconds, mine, theirs = time.monotonic() - wall, time.process_time() - own, self._servers_cpu() - cpu
        turns = contestant.turns
        turns.steps += steps
        turns.per_s.append(steps / seconds)
        turns.own_ms.append(mine / steps * 1000)
        turns.all_ms.append((mine + theirs) / steps * 1000)
        turns.log_bytes.append((self._log() - log) / steps)
        turns.history_bytes.append(await history() / steps)

    def _servers_cpu(self) -> float:
        return cpu_seconds(self._servers.temporal_pid, *family(self._postgres))

    def _log(self) -> int:
        return number(self._servers.postgres.dsn, _LOG)


def number(dsn: str, query: LiteralString) -> int:
    """The one whole number that the query gives."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def ours(side: Side, workflow: str) -> Run:
    """A run as the API starts it, until its row says that it has ended."""
    client = RunClient(side.client, side.settings.temporal.task_queue)

    async def run(rounds: int) -> History:
        row, bundle = await side.accept(workflow, {"upto": rounds})
        await client.start(start_of(row, bundle))
        handle = side.client.get_workflow_handle(str(row.run_id))
        await handle.result()
        await side.reaches(row.run_id, "COMPLETED")

        async def history() -> int:
            return (await handle.describe()).raw_description.workflow_execution_info.history_size_bytes

        return history

    return run


async def _no_history() -> int:
    return 0


def langgraph(saver: PostgresSaver, durability: str) -> Run:
    """A thread of the compiled graph. With `sync` each step's checkpoint is committed before the next step begins."""
    graph = langgraph_loop(saver)

    async def run(rounds: int) -> History:
        config: dict[str, Any] = {"configurable": {"thread_id": str(uuid4())}, "recursion_limit": 2 * rounds + 10}
        given = {"n": 0, "upto": rounds, "again": True}
        made = await asyncio.to_thread(graph.invoke, given, config, durability=durability)
        assert made["n"] == rounds
        return _no_history

    return run


@DBOS.step()
def _count(n: int) -> int:
    return n + 1


@DBOS.step()
def _more(n: int, upto: int) -> bool:
    return n < upto


@DBOS.workflow()
def _loop(upto: int) -> int:
    n = _count(0)
    while _more(n, upto):
        n = _count(n)
    return n


async def dbos(rounds: int) -> History:
    """A DBOS workflow of two steps a round."""

    def run() -> int:
        with SetWorkflowID(str(uuid4())):
            return _loop(rounds)

    assert await asyncio.to_thread(run) == rounds
    return _no_history


@contextmanager
def launched(dsn: str) -> Iterator[None]:
    """DBOS at work on a database."""
    DBOS(config=DBOSConfig(name="loop", system_database_url=dsn, log_level="ERROR"))
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


@asynccontextmanager
async def contest() -> AsyncIterator[Contest]:
    """All contestants, at work on the same servers. When all have stopped, what they left behind is counted."""
    async with servers() as made:
        found = Contest(made)
        async with AsyncExitStack() as stack:
            for name, workflow in ((OURS, LOOP), (OURS_CLAIMED, CLAIMED), (OURS_APART, APART)):
                await _enter_ours(stack, found, made, name, workflow)
            for name, durability in ((SAVER, "sync"), (SAVER_BEHIND, "async")):
                await _enter_langgraph(stack, found, made.new_database(durability), name, durability)
            await _enter_dbos(stack, found, made.new_database("dbos"))
            yield found
        for contestant in found.contestants.values():
            await contestant.count()


async def _enter_ours(stack: AsyncExitStack, found: Contest, made: Servers, name: str, workflow: str) -> None:
    side = await stack.enter_async_context(made.side(workflow, app, POLICY.read_text()))
    worker = make_worker(side.client, side.services, side.settings)
    await stack.enter_async_context(working([worker]))
    found.contestants[name] = Contestant(ours(side, workflow), side.dsn, side.written, number(side.dsn, _KEPT))


async def _enter_langgraph(stack: AsyncExitStack, found: Contest, dsn: str, name: str, durability: str) -> None:
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
    rows, kept = await rows_written(dsn), number(dsn, _KEPT)
    saver = stack.enter_context(PostgresSaver.from_conn_string(dsn))
    found.contestants[name] = Contestant(langgraph(saver, durability), dsn, rows, kept)


async def _enter_dbos(stack: AsyncExitStack, found: Contest, dsn: str) -> None:
    with launched(dsn):
        pass  # it makes its tables
    rows, kept = await rows_written(dsn), number(dsn, _KEPT)
    stack.enter_context(launched(dsn))
    found.contestants[DBOS_STEPS] = Contestant(dbos, dsn, rows, kept)
