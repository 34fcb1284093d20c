"""A business process beside the job queues PgQueuer and Procrastinate, all on one PostgreSQL.

The server has `synchronous_commit` and `fsync` on for all alike; each contestant has a database of its own. A *task* is
one piece of work that changes the data of one row: ours is a Task of a process of three, with trays of 100; a peer's is
a job, three for each item. A peer's jobs are all in the queue from the beginning, and nothing holds the second of an
item back until the first is done; ours go in order, with the ledger, the stage log and the checks of each claim.

- *tasks executed* are per second of wall time. Ours: from the Monitor's poll until all Transactions are COMPLETED, on
  one worker, with Temporal's development server. A peer: its worker from its start until the queue is empty and it has
  ended. Ours and the peers have up to eight tasks at once. What waits was put there before, out of the time. Our Tasks
  say `effects=False`: they get a Transaction and give back what is to change, which is written for a tray at once.
- *transactional tasks executed* are the same work in Tasks that may write to tables of their own: each has a database
  transaction for itself, with its row in the ledger.
- *CPU* of a task is that of the process that works; *with its servers*, that of PostgreSQL and Temporal too.
- *claims* are items taken per second of wall time, by one claimer after the other: ours by a claim of a tray of 100,
  PgQueuer's by a batch of 100, Procrastinate's one job at a time, which is the only way that it has. A Transaction is
  claimed once for its whole process, a peer's job for one task: *tasks claimed* counts three for each of ours.
- *claim latency* is one such call, with 1,000,000 rows waiting (50,000 with `--quick`): of a hundred for ours and
  PgQueuer, of one for Procrastinate. *For each row* is the same divided by what the call has taken, *for each task* by
  the tasks that it was taken for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

import psycopg

from benchmarks.harness import Report, Samples, Scale, main
from benchmarks.queues.ours import TASKS, computing, ours, transactional
from benchmarks.queues.peers import pgqueuer, procrastinates
from benchmarks.support.ground import Servers, servers
from benchmarks.support.processes import cpu_seconds, family

OURS, TRANSACTIONAL, PGQUEUER, PROCRASTINATE = "ours", "ours_transactional", "PgQueuer", "Procrastinate"
CLAIMERS = (OURS, PGQUEUER, PROCRASTINATE)
"""Those whose claims are measured; a claim is the same whatever the Tasks are."""
CLAIMS = 10
"""Calls of one turn of claims."""


class Contestant(Protocol):
    """What is compared."""

    claim_size: int

    async def fill(self, count: int) -> None:
        """Put so many there that wait."""

    async def prepare(self, items: int) -> None:
        """Put so many items there, of `TASKS` tasks each."""

    async def execute(self) -> None:
        """Work until nothing waits."""

    async def claim(self) -> int:
        """Take what one call takes; how many."""


@dataclass
class Turns:
    """What a contestant's turns took, one figure for each round."""

    per_s: list[float] = field(default_factory=list)
    own_ms: list[float] = field(default_factory=list)
    all_ms: list[float] = field(default_factory=list)
    claims_per_s: list[float] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)
    row_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Size:
    """How much there is of each."""

    items: int
    waiting: int
    rounds: int


class Contest:
    """All contestants, and the servers that work for them."""

    def __init__(self, made: Servers, contestants: Mapping[str, tuple[Contestant, str]]) -> None:
        self._servers, self._contestants = made, contestants
        self.turns = {name: Turns() for name in contestants}

    async def hold(self, size: Size) -> None:
        """Each in turn: first the tasks, then claims with little waiting, then with much."""
        for number in range(size.rounds + 1):
            for name in self._contestants:
                await self._work(name, size.items, counts=number > 0)
        for name in CLAIMERS:
            await self._wait(name, self._contestants[name][0].claim_size * CLAIMS * (size.rounds + 1))
        for _ in range(size.rounds):
            for name in CLAIMERS:
                self.turns[name].claims_per_s.append(await self._claims(name))
        for name in CLAIMERS:
            await self._wait(name, size.waiting)
        for _ in range(size.rounds):
            for name in CLAIMERS:
                await self._latency(name)

    async def _wait(self, name: str, count: int) -> None:
        each, dsn = self._contestants[name]
        await each.fill(count)
        await _analyze(dsn)
        await self._claims(name)

    async def _work(self, name: str, items: int, *, counts: bool) -> None:
        (each, _), tasks, turns = self._contestants[name], items * TASKS, self.turns[name]
        await each.prepare(items)
        cpu, own, wall = self._servers_cpu(), time.process_time(), time.monotonic()
        await each.execute()
        seconds, mine, theirs = time.monotonic() - wall, time.process_time() - own, self._servers_cpu() - cpu
        if counts:
            turns.per_s.append(tasks / seconds)
            turns.own_ms.append(mine / tasks * 1000)
            turns.all_ms.append((mine + theirs) / tasks * 1000)

    async def _claims(self, name: str) -> float:
        each, _ = self._contestants[name]
        began, taken = time.monotonic(), 0
        for _ in range(CLAIMS):
            taken += await each.claim()
        assert taken == CLAIMS * each.claim_size, f"{name} has taken {taken}"
        return taken / (time.monotonic() - began)

    async def _latency(self, name: str) -> None:
        (each, _), took, turns = self._contestants[name], list[float](), self.turns[name]
        for _ in range(CLAIMS):
            began = time.monotonic()
            assert await each.claim() == each.claim_size
            took.append((time.monotonic() - began) * 1000)
        turns.latency_ms.append(median(took))
        turns.row_ms.append(median(took) / each.claim_size)

    def _servers_cpu(self) -> float:
        assert self._servers.postgres.pid is not None
        return cpu_seconds(self._servers.temporal_pid, *family(self._servers.postgres.pid))


async def _analyze(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        await conn.execute("vacuum analyze")


@asynccontextmanager
async def contest() -> AsyncIterator[Contest]:
    """All contestants at work on the same servers."""
    async with servers() as made, AsyncExitStack() as stack:
        contestants: dict[str, tuple[Contestant, str]] = {
            OURS: await stack.enter_async_context(ours(made, OURS, computing)),
            TRANSACTIONAL: await stack.enter_async_context(ours(made, TRANSACTIONAL, transactional)),
            PGQUEUER: await stack.enter_async_context(pgqueuer(made)),
            PROCRASTINATE: await stack.enter_async_context(procrastinates(made)),
        }
        yield Contest(made, contestants)


async def compare(size: Size) -> Mapping[str, Turns]:
    """What all took."""
    async with contest() as made:
        await made.hold(size)
    return made.turns


def samples(found: Mapping[str, Turns]) -> list[Samples]:
    """The figures, ours beside each peer's."""
    return [each for name in (PGQUEUER, PROCRASTINATE) for each in _beside(found, name)]


def _beside(found: Mapping[str, Turns], name: str) -> list[Samples]:
    ours_, apart, peer = found[OURS], found[TRANSACTIONAL], found[name]

    def rates(what: str, mine: list[float], theirs: list[float]) -> Samples:
        return Samples(what, "per second", mine, theirs, name, more_is_better=True)

    def times(what: str, mine: list[float], theirs: list[float]) -> Samples:
        return Samples(what, "ms", mine, theirs, name)

    return [
        rates("tasks executed", ours_.per_s, peer.per_s),
        times("CPU of a task", ours_.own_ms, peer.own_ms),
        times("CPU of a task, with its servers", ours_.all_ms, peer.all_ms),
        rates("transactional tasks executed", apart.per_s, peer.per_s),
        times("CPU of a transactional task, with its servers", apart.all_ms, peer.all_ms),
        rates("claims", ours_.claims_per_s, peer.claims_per_s),
        rates("tasks claimed", [each * TASKS for each in ours_.claims_per_s], peer.claims_per_s),
        times("claim latency with many waiting", ours_.latency_ms, peer.latency_ms),
        times("claim latency with many waiting, for each row", ours_.row_ms, peer.row_ms),
        times("claim latency with many waiting, for each task", [each / TASKS for each in ours_.row_ms], peer.row_ms),
    ]


def measure(scale: Scale) -> Report:
    """All of it; a peer that is ahead is shown as it is."""
    size = Size(100, 50_000, scale.rounds) if scale.quick else Size(1_000, 1_000_000, scale.rounds)
    return Report(samples(asyncio.run(compare(size))))


if __name__ == "__main__":
    main("process", measure)
